"""What endpoints say, as one table of wordings: the only place where their words are known.

A wording is a rule over the words of an answer and not a list of sentences where that is possible,
since each endpoint has its own. Status, code and type are judged in `endpoint_errors`.
"""

import re
from collections.abc import Sequence

# Causes

TOO_LONG_CODES = frozenset(
    {
        *("context_length_exceeded", "exceed_context_size_error", "request_too_large", "1261"),
        *("context_window_exceeded", "string_above_max_length", "input_too_long"),
    }
)
TOO_LONG = re.compile(
    r"maximum (context|prompt) length|context (length|window|size|limit)|prompt is too long"
    r"|too many tokens|input is too long|request too large|token count[^.]{0,60} exceeds"
    r"|model token limit|max_new_tokens. must be|输入.{0,20}(过长|超过|超出)",
    re.IGNORECASE,
)
"""Wordings that are of nothing but a request that is too long."""
_SIZED = re.compile(
    r"\b(input|inputs|prompt|context|sequence|conversation|messages?|request|seq_len)\b"
    r"|\b(prompt|input)_tokens\b",
    re.IGNORECASE,
)
_SIZE = re.compile(r"\b(length|long|tokens?|size|window|large)\b|_(tokens|len|length)\b", re.I)
_BEYOND = re.compile(
    r"exceed|\b(less|fewer) than|at most|too (long|large|big)|(longer|larger|greater|more) than"
    r"|over the|\bmax(imum)?\b|\blimit|(should|must) be|between|\brange\b|surpass|<=|reduce",
    re.IGNORECASE,
)
_BEYOND_ANY = re.compile(
    r"\b(prompt|input|inputs|context|conversation|messages?|request)\b[^.]{0,40}"
    r"(exceed[^.]{0,40}(length|tokens?|size|limit|window)|too (long|large)|(longer|larger) than)"
    r"|reduce the length of the (messages|prompt|input)",
    re.IGNORECASE,
)
_REPLY_LIMIT = re.compile(
    r"\bmax_?(completion_|output_|new_)?tokens|(completion|output) tokens", re.IGNORECASE
)
_LARGE_NUMBER = re.compile(r"(?<![\w.-])(\d{1,3}(?:[,_]\d{3})+|\d{3,})(?![\w-])")
_RATE = re.compile(
    r"per (minute|min|day|hour|second)|\b[TR]P[MDS]\b|rate.?limit|please wait|try again", re.I
)
TOO_LARGE = re.compile(r"request too large", re.IGNORECASE)
"""Wording for a single request above what is served per minute, which no waiting helps."""

CREDIT_CODES = frozenset(
    {
        *("insufficient_quota", "insufficient_balance", "insufficient_credits", "1113"),
        *("billing_hard_limit_reached", "billing_not_active", "exceeded_current_quota_error"),
        *("credit_balance_too_low", "arrearage", "insufficient_funds", "payment_required"),
    }
)
CREDIT = re.compile(
    r"(insufficient|not enough|no|low|negative|exhausted|depleted|out of|ran out of|used up"
    r"|top up|add)\b[^.]{0,30}\b(balance|credits?|funds|money)\b"
    r"|\b(balance|credits?|funds)\b[^.]{0,40}(insufficient|not enough|too low|is low|exhausted"
    r"|depleted|run out|ran out|used up|is empty|is 0\b|negative)"
    r"|\brecharge|in arrears|arrearage|overdue (payment|bill)|payment required|余额不足|欠费|充值",
    re.IGNORECASE,
)
CREDIT_OR_RATE = re.compile(r"\bquota\b[^.]{0,80}\b(billing|plan)\b", re.IGNORECASE)
"""Said of an account as of a rate: it is the rate if the answer names a time to wait."""
AFFORDS = re.compile(r"can only afford ([\d,]+)", re.IGNORECASE)

CONTENT_CODES = re.compile(
    r"invalid_prompt|\w+_policy(_violation)?|data_residency_mismatch|content_filter(ed)?"
    r"|data_?inspection_?failed|moderation\w*|1301|sensitive\w*|content_blocked",
    re.IGNORECASE,
)
"""Codes of a request that was refused for its content."""
CONTENT = re.compile(
    r"\bmoderation\b|\bflagged\b|content (policy|management|filter)|safety (system|filter|policy)"
    r"|(inappropriate|sensitive|unsafe|harmful) content|usage polic|data may contain|敏感|违规",
    re.IGNORECASE,
)
REFUSED_FINISHES = frozenset(
    {
        *("content_filter", "refusal", "sensitive", "safety", "recitation", "blocklist"),
        *("prohibited_content", "spii", "content_filtered", "error_toxic"),
    }
)
"""Finish reasons of a reply that was refused after the request had been accepted."""

FAILED_FINISH = re.compile(
    r"error|fail|insufficient|unavailable|overload|abort|cancel|time_?d?_?out|interrupt",
    re.IGNORECASE,
)
"""Finish reasons of a request that failed after its reply had begun."""
CUT_FINISHES = frozenset({"max_tokens", "model_length", "max_output_tokens", "length_limit"})
"""Finish reasons that some endpoints give instead of `length`."""
NO_KEY = re.compile(
    r"\bapi[ _-]?key (is )?(not valid|invalid|expired|missing|incorrect)|\binvalid[ _]api[ _]key"
    r"|incorrect api key|\b(authentication|unauthorized)\b",
    re.IGNORECASE,
)
NO_MODEL = re.compile(
    r"not a valid model id|\binvalid model\b|model_not_found|\bmodel\b[^.]{0,80}"
    r"(does not exist|not exist|not found|unknown model)",
    re.IGNORECASE,
)
"""Wordings for an unknown key or model where the status does not say it."""
NOT_UNKNOWN = re.compile(r"tool_choice|v1/responses|v1/chat/completions")
"""A 404 with this accepts the model, but not this request."""
PAGE = re.compile(r"\s*<(!doctype|html|head|body|\?xml)", re.IGNORECASE)
TITLE = re.compile(r"<title[^>]*>([^<]{1,120})", re.IGNORECASE)


def says_too_long(text: str) -> bool:
    if TOO_LONG.search(text):
        return True
    is_sized = bool(_SIZED.search(text))
    if _RATE.search(text) or (_REPLY_LIMIT.search(text) and not is_sized):
        return False
    if _BEYOND_ANY.search(text):
        return True
    numbers = [int(re.sub(r"[,_]", "", number)) for number in _LARGE_NUMBER.findall(text)]
    # Smaller limits are of names and lists.
    is_window = any(number >= LEAST_WINDOW for number in numbers)
    return is_window and is_sized and bool(_SIZE.search(text) and _BEYOND.search(text))


LEAST_WINDOW = 512

# Times to wait, in words

WAIT_WORDS = re.compile(
    r"(?:try again|retry|wait|reset\w*)\D{0,30}?((?:\d+(?:\.\d+)?\s*"
    r"(?:milliseconds?|ms|hours?|h|minutes?|mins?|m|seconds?|secs?|s)(?![a-z])\s*)+)",
    re.IGNORECASE,
)

# Parts of a request, as refusals name them

COUNTS = "stream_options"
LIMIT = "max_completion_tokens"
TEMPERATURE = "temperature"
EFFORT = "reasoning_effort"
NULL = "null"
STREAM = "stream"
TURNS = "turns"
IDS = "ids"
KEY = "prompt_cache_key"
MARKS = "cache marks"
STALE = "stale reasoning"
REASONING = "reasoning"
INCLUDE = "include"
PARALLEL = "parallel_tool_calls"
STRICT = "strict"
NAMED_PARTS = {
    # First, because it quotes other parts: such reasoning was encrypted for another key, for
    # example.
    STALE: re.compile(
        r"invalid_encrypted_content|encrypted content .{0,300}could not be|provided without its"
        r" required|Items are not persisted|Invalid .?signature.? in .?thinking",
        re.IGNORECASE,
    ),
    COUNTS: re.compile(r"stream_options"),
    LIMIT: re.compile(r"max_completion_tokens"),
    TEMPERATURE: re.compile(r"temperature", re.IGNORECASE),
    EFFORT: re.compile(
        r"(supplied: |parameter:? ['\"`]?)reasoning[_.]?effort|, ['\"]reasoning_effort['\"]\)?\]?"
        r"|reasoning[_.]effort\S* (is|are) not supported|does not support thinking",
        re.IGNORECASE,
    ),
    REASONING: re.compile(r"reasoning_content|reasoning_details|thinking_blocks"),
    MARKS: re.compile(r"prompt_cache_breakpoint|cache_control"),
    KEY: re.compile(KEY),
    PARALLEL: re.compile(r"parallel.{0,3}tool.{0,3}calls?", re.IGNORECASE),
    INCLUDE: re.compile(r"encrypted content is not supported|['\"`]include\b", re.IGNORECASE),
    STRICT: re.compile(r"invalid schema for function|['\"`.]strict\b", re.IGNORECASE),
    TURNS: re.compile(r"unexpected role|roles? must alternate", re.IGNORECASE),
    IDS: re.compile(r"tool call id", re.IGNORECASE),
    NULL: re.compile(r"\bcontent\b.{0,120}\b(null|none|nonetype|string)\b", re.IGNORECASE),
    # Last, because the word also occurs in errors about other parts.
    STREAM: re.compile(r"\bstream(ing)?\b", re.IGNORECASE),
}
"""Names of parts in refusals, the likelier ones first: a refusal may quote the whole request."""
ITEM_FIELD = re.compile(r"\b(input|messages)(?:\[|\.)(\d+)\]?((?:\.[a-z_]+|\[\d+\]|\.\d+)+)", re.I)
"""How a refusal names a field of what was sent back."""
OWN_ITEM = re.compile(r"\binput(?:\[|\.)\d+\b|\binput item\b|\bItem ['\"]", re.IGNORECASE)
NEEDS_RESPONSES = re.compile(
    r"v1/responses|responses api|not (supported in|accessible via) the \S*chat/completions",
    re.IGNORECASE,
)
NEEDS_CHAT = re.compile(
    r"v1/chat/completions|not (supported|available) (in|with|by|via) (the )?(v1/)?responses",
    re.IGNORECASE,
)
"""How a refusal of one API names the other."""
NEEDS_REASONING = re.compile(
    r"reasoning_content.{0,80}(passed back|is missing|is required|must be)"
    r"|missing .?reasoning_content",
    re.IGNORECASE,
)
REPLY_LIMIT = re.compile(r"max_(completion_|output_|new_)?tokens|(completion|output) tokens")
FIGURE = re.compile(r"(?<![\w.-])\d+(?![\w-])")
_KEYWORD = re.compile(
    r"""unknown name \\*["'](\S{1,40}?)\\*["'] at \\*["']tools|\.(format): only"""
    r"""|(?:unsupported|unknown|unrecognized|unexpected|disallowed|invalid)[ ]"""
    r"""(?:json[ ])?(?:schema[ ])?(?:keyword|key|property|field|attribute|constraint)s?"""
    r"""(?:[ ]in[ ][\w ]{1,30})?:?[ ]*\\*["'`]?([\w$]{2,40})"""
    r"""|\\*["'`]([\w$]{2,40})\\*["'`][ ](?:is|are)[ ]not[ ](?:permitted|supported|allowed)"""
    r"""|\b(?:keyword|property|field)[ ]\\*["'`]([\w$]{2,40})\\*["'`]""",
    re.IGNORECASE,
)
"""How servers name a keyword of a tool's schema that they do not take."""
_OF_SCHEMA = re.compile(r"schema|\btools?\b|function|grammar|parameters", re.IGNORECASE)
"""Only with one of these words a refusal that names a keyword is of a schema."""
_BAD_PATTERN = re.compile(r"pattern must|\bregex|regular expression", re.IGNORECASE)
"""How servers complain of what a `pattern` contains, without its name."""
SCHEMA_KEYWORDS = frozenset(
    {
        *(
            "$schema",
            "$id",
            "$ref",
            "$defs",
            "$comment",
            "definitions",
            "title",
            "default",
            "const",
        ),
        *("format", "pattern", "examples", "example", "deprecated", "readOnly", "writeOnly"),
        *("minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "contains", "minimum"),
        *("maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minProperties"),
        *("maxProperties", "patternProperties", "propertyNames", "additionalProperties", "not"),
        *("unevaluatedProperties", "dependentRequired", "dependentSchemas", "contentEncoding"),
        *("contentMediaType", "prefixItems", "if", "then", "else", "nullable", "contentSchema"),
        *("unevaluatedItems", "additionalItems", "dependencies", "discriminator", "xml"),
        *("minContains", "maxContains", "externalDocs"),
    }
)
"""Keywords that a schema can do without: what is lost is checked when the tool is called."""


def refused_keywords(refusal: str) -> frozenset[str]:
    if not _OF_SCHEMA.search(refusal):
        return frozenset()
    named = {
        name
        for place, *others in _KEYWORD.findall(refusal)
        for name in (place, *others)
        # The first form says where the name stands, so that it may be any.
        if name and (name == place or name in SCHEMA_KEYWORDS or name[0] == "$")
    }
    if _BAD_PATTERN.search(refusal):
        named.add("pattern")
    return frozenset(named)


# Remedies

COMMAND = "`starter.py resume JOB --set {setting}`"
ANOTHER = "`--set model.name=…` takes another model"
PARSER = "Start the server with its tool-call parser: docs/model-endpoints.md, has the flags"
_SERVER = ("tool-call-parser", "tool call parser", "enable-auto-tool-choice", "--jinja")
"""Wording of servers that were started without parsing tool calls."""
_UNKNOWN = ("not supported", "unknown", "unrecognized", "extra", "not permitted")
Hint = tuple[tuple[str, ...], str, str]
"""Words of an endpoint's message, the setting that helps, and its effect."""
_APIS: tuple[Hint, ...] = (
    (
        ("use /v1/responses", "only supported in v1/responses", "use the responses api"),
        "model.api=responses",
        "asks by the Responses API",
    ),
    (
        (
            *("use /v1/chat/completions", "only supported in v1/chat/completions"),
            *("use the chat completions", "not supported with the responses api"),
        ),
        "model.api=chat",
        "asks by Chat Completions",
    ),
)
_SETTINGS: tuple[Hint, ...] = (
    (
        ("prompt_cache_breakpoint", "cache_control"),
        "model.cache_marks=none",
        "marks nothing for the cache",
    ),
    (("reasoning_content",), "model.send_reasoning=true", "hands back what the model thought"),
    (("reasoning", "thinking"), "model.reasoning_effort=null", "sends no effort"),
    (("temperature",), "model.temperature=null", "sends no temperature"),
    (
        ("max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens"),
        "model.max_output_tokens=4000",
        "asks for shorter replies",
    ),
    (("stream",), "model.stream=false", "asks for replies in one piece"),
)
"""The more specific ones come first."""


def setting_remedy(setting: str, effect: str) -> str:
    return f"{COMMAND.format(setting=setting)} {effect}"


UNSTREAMED = setting_remedy("model.stream=false", "asks for replies in one piece")
LONGER_SILENCE = setting_remedy("model.stall_seconds=600", "waits longer within a reply")
LONGER_REPLY = setting_remedy("model.timeout_seconds=3600", "waits longer for a reply")
OTHER_ADDRESS = setting_remedy("model.base_url=http://HOST/v1", "takes another address")


def endpoint_remedy(words: str) -> str:
    """Return the remedy for an endpoint's words, as the end of a sentence; empty if unknown."""
    text = words.lower()
    if _contains_any(text, _SERVER):
        return f"{PARSER}; or {ANOTHER}"
    if helps := _matching_remedy(text, _APIS):
        return helps
    if "tool" in text and "support" in text:
        return f"{ANOTHER}, one that calls tools"
    if "reasoning_content" in text and _contains_any(text, _UNKNOWN):
        return setting_remedy("model.send_reasoning=false", "leaves out what the model thought")
    return _matching_remedy(text, _SETTINGS)


def _matching_remedy(text: str, hints: Sequence[Hint]) -> str:
    return next(
        (setting_remedy(setting, effect) for words, setting, effect in hints
         if _contains_any(text, words)),
        "",
    )  # fmt: skip


def _contains_any(text: str, words: Sequence[str]) -> bool:
    return any(word in text for word in words)
