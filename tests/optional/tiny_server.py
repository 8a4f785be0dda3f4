"""`python -m tests.optional.tiny_server PORT`: llama.cpp with a tiny model of random weights.

An independent OpenAI-compatible server for the optional test; its replies are noise. Needs
xllamacpp, gguf and numpy (`uv run --no-project --with xllamacpp --with gguf --with numpy …`).
"""

import sys
import tempfile
import time
from pathlib import Path

import gguf
import numpy as np
import xllamacpp

WIDTH, FORWARD, HEADS, WINDOW = 64, 128, 4, 65_536
TEMPLATE = """\
{% if tools %}tools: {% for tool in tools %}{{ tool | tojson }}
{% endfor %}A call is <tool_call>
{"name": NAME, "arguments": OBJECT}
</tool_call>
{% endif %}{% for m in messages %}{{ m.role }}: {{ m.content or "" }}
{% for call in m.tool_calls or [] %}<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{% endfor %}{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}"""
"""With tools, so that the server makes a grammar of their schemas, as it does for real models."""


def tiny_model_tokens() -> list[str]:
    """Return the 256 tokens of byte-level vocabularies: a printable character for each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = (byte for byte in range(256) if byte not in plain)
    shown = {byte: byte for byte in plain} | {byte: 256 + n for n, byte in enumerate(others)}
    return [chr(shown[byte]) for byte in range(256)]


def write_tiny_model(path: Path) -> None:
    """Write a model of one layer with random but reproducible weights."""
    chance = np.random.default_rng(7)
    tokens = [*tiny_model_tokens(), "<s>", "</s>"]
    out = gguf.GGUFWriter(str(path), "llama")
    out.add_context_length(WINDOW)
    out.add_embedding_length(WIDTH)
    out.add_block_count(1)
    out.add_feed_forward_length(FORWARD)
    out.add_head_count(HEADS)
    out.add_head_count_kv(HEADS)
    out.add_layer_norm_rms_eps(1e-5)
    out.add_rope_dimension_count(WIDTH // HEADS)
    out.add_vocab_size(len(tokens))
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre("default")
    out.add_token_list(tokens)
    out.add_token_types([1] * 256 + [3, 3])
    out.add_token_merges(["a b"])
    out.add_bos_token_id(256)
    out.add_eos_token_id(257)
    out.add_chat_template(TEMPLATE)

    def add(name: str, *shape: int) -> None:
        out.add_tensor(name, (chance.standard_normal(shape) * 0.2).astype(np.float32))

    add("token_embd.weight", len(tokens), WIDTH)
    add("output.weight", len(tokens), WIDTH)
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        out.add_tensor(f"{name}.weight", np.ones(WIDTH, np.float32))
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        add(f"blk.0.{name}.weight", WIDTH, WIDTH)
    add("blk.0.ffn_gate.weight", FORWARD, WIDTH)
    add("blk.0.ffn_up.weight", FORWARD, WIDTH)
    add("blk.0.ffn_down.weight", WIDTH, FORWARD)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def serve_tiny_model() -> None:
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "tiny.gguf"
        write_tiny_model(model)
        settings = xllamacpp.CommonParams()
        settings.model.path = str(model)
        settings.n_ctx, settings.n_parallel = WINDOW, 1
        settings.port, settings.use_jinja, settings.warmup = int(sys.argv[1]), True, False
        server = xllamacpp.Server(settings)
        print(f"listening on {server.listening_address}/v1", flush=True)
        while True:
            time.sleep(60)


if __name__ == "__main__":
    serve_tiny_model()
