import asyncio, sys, time, json, tempfile
from pathlib import Path
from tests.crash.processes import *
from tests.crash.model import Ledger
from activities.rehearsal.server import ModelServer

async def main():
    tmp = Path(tempfile.mkdtemp(prefix="crash-"))
    print(tmp)
    server = TemporalServer(tmp); server.start()
    ledger = Ledger("Ada", phases=4)
    with nursery(tmp) as n, ModelServer(ledger, delay=0.1) as ms:
        client = await server.client()
        for i in range(3):
            t=time.time()
            w = n.worker(server.address, tmp/"root", "q1", ms.base_url)
            await w.until_ready(); print("worker ready", time.time()-t)
            print(Path(f"/proc/{w.pid}/stat").read_text().split()[13:15])
            if i < 2: w.kill(); print(gone(w))
        t=time.time()
        h = await client.start_workflow("Job", ledger.start(), id="job1", task_queue="q1", result_type=dict)
        r = await h.result()
        print(time.time()-t, len(ms.calls), r["tree"], r["usage"], r["phases"])
        text = (tmp/"root"/"job1"/"output/ledger.md").read_text()
        print(text == ledger.text, len(text))
        desc = await h.describe(); print(desc.run_id, h.first_execution_run_id, desc.history_length)
        w.kill()
    server.kill()
asyncio.run(main())
