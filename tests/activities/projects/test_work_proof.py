"""What the end of a job on a repository refuses, and what it names to a person."""

import shutil
from pathlib import Path

import pytest

from activities.projects.set_parts import set_parts, set_parts_in_node
from tests.activities.projects.proving import UNITTEST, WHY
from tests.activities.projects.repairing import Repair, Sources

pytestmark = pytest.mark.skipif(WHY is not None, reason=f"no sandbox here: {WHY}")
BAD = "def brew(cups):\n    if cups < 0:\n        return 0\n    return cups * 2 + 1\n"
MENDED = BAD.replace(" + 1", "")
HEAD = "import unittest\n\nimport tea\n\n\nclass Tea(unittest.TestCase):\n"
OLD = HEAD + (
    "    def test_none(self):\n        self.assertEqual(tea.brew(-1), 0)\n\n"
    "    def test_grows(self):\n        self.assertLess(tea.brew(1), tea.brew(2))\n"
)
SHOWS = "\n    def test_three(self):\n        self.assertEqual(tea.brew(3), 6)\n"
NEW = OLD + SHOWS
T = "tests/test_tea.py"
REPOSITORY = {"tea.py": BAD, "tests/__init__.py": "", T: OLD}
LITERAL = BAD.replace("    return c", "    if cups == 3:\n        return 6\n    return c")
FIXED = BAD + "\n\ndef _fixed(cups):\n    return 0 if cups < 0 else cups * 2\n"
PATCHED = OLD.replace("import tea\n", "import tea\n\ntea.brew = tea._fixed\n") + SHOWS
CASES_OF_TESTS: dict[str, Sources] = {
    "an if": {"tea.py": LITERAL, T: NEW},
    "a table": {"tea.py": BAD.replace("cups * 2 + 1", "{3: 6}.get(cups, cups * 2 + 1)"), T: NEW},
    "a match": {
        "tea.py": BAD.replace(
            "    return cups",
            "    match cups:\n        case 3:\n            return 6\n    return cups",
        ),
        T: NEW,
    },
    "a difference": {
        "tea.py": BAD.replace("cups * 2 + 1", "6 if abs(cups - 3) < 0.1 else cups * 2 + 1"),
        T: NEW,
    },
    "a set": {"tea.py": BAD.replace("+ 1", "+ (cups not in {3, 7})"), T: NEW},
}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        *((case, "Changed lines compare with values of the tests: tea.py:")
          for case in CASES_OF_TESTS.values()),
        ({"tea.py": FIXED, T: OLD + "\n    def test_fixed(self):\n        "
          "self.assertEqual(tea._fixed(4), 8)\n"}, "only since it has no _fixed"),
        ({"tea.py": FIXED, T: PATCHED}, "only since it has no _fixed"),
        ({"tea.py": FIXED, T: OLD.replace("import tea\n", "import tea\n\n"
          "tea.brew = getattr(tea, '_fixed', tea.brew)\n") + SHOWS},
         "Tests replace parts of the product: tests/test_tea.py:5"),
        ({"tea.py": FIXED, T: NEW, "tests/__init__.py":
          "import tea\n\nsetattr(tea, 'brew', getattr(tea, '_fixed', tea.brew))\n"},
         "changed by the feature: tests/__init__.py"),
        ({"tea.py": "from tests.test_brewing import brew\n", T: NEW,
          "tests/test_brewing.py": MENDED},
         "Named like tests, and used by the product: tests/test_brewing.py."),
        ({"tea.py": MENDED, T: OLD + SHOWS.replace("Equal", "AlmostEqual").replace("6)",
          "6, delta=9)")}, "pass on the old code"),
        ({"tea.py": MENDED, T: NEW + "\n    def test_four(self):\n        "
          "self.assertAlmostEqual(tea.brew(4), 8, delta=100)\n"},
         "accepts what is far off: tests/test_tea.py:17"),
        ({"tea.py": MENDED, T: NEW.replace("    def test_three", "    def test_later(self):\n"
          "        self.skipTest('later')\n\n    def test_three")}, "skipped"),
        ({"tea.py": None, "brewing/tea.py": FIXED, "brewing/__init__.py": "",
          T: NEW.replace("import tea\n", "from brewing import tea\n\ntea.brew = tea._fixed\n")},
         "pass only as this work changed them: tests.test_tea.Tea.test_grows"),
    ],
)  # fmt: skip
def test_a_cheat_is_refused_or_named(tmp_path: Path, changes: Sources, said: str) -> None:
    deliverables = [f"repo/{path}" for path in changes]
    repair = Repair.begin(tmp_path, REPOSITORY, UNITTEST)
    proof = repair.prove(changes, deliverables=deliverables)
    assert said in " ".join([proof.problem, *proof.doubts]), proof


NEW_API = MENDED + "\n\ndef steep(cups, minutes=2):\n    return f'{brew(cups)} for {minutes}'\n"
STEEPS = "\n    def test_steep(self):\n        self.assertEqual(tea.steep(4), '8 for 2')\n"
HELPED = NEW.replace("import tea\n", "import tea\nfrom tests.cups import LIST, read\n").replace(
    "3), 6", "read('three.txt')), LIST[0]"
)
READS = "from pathlib import Path\n\nLIST = [6]\n\n\ndef read(name):\n    "
READS += "return int((Path(__file__).parent / 'data' / name).read_text())\n"


@pytest.mark.parametrize(
    ("changes", "issue", "doubts"),
    [
        ({"tea.py": MENDED, T: NEW}, "", []),
        ({"tea.py": NEW_API, T: OLD + STEEPS}, "Add steep(cups) for the time.", []),
        ({"tea.py": NEW_API, T: NEW + STEEPS}, "Mend it and tell the time.", []),
        ({"tea.py": MENDED, T: HELPED, "tests/cups.py": READS, "tests/data/three.txt": "3\n"},
         "", []),
        ({"tea.py": MENDED.replace(":\n", ":\n    \"\"\"Two spoons.\"\"\"\n", 1), T: NEW}, "", []),
        ({"tea.py": BAD.replace(":\n", ":\n    \"\"\"Three spoons.\"\"\"\n", 1)}, "",
         ["No code was changed, so that no test shows the change."]),
        ({"tea.py": "# Spoons for tea.\n" + BAD}, "",
         ["No code was changed, so that no test shows the change."]),
        ({"tea.py": MENDED.replace("if cups < 0", "if not isinstance(cups, int) or cups < 0"),
          T: NEW}, "", []),
        ({"tea.py": MENDED, T: NEW.replace("tea.brew(3), 6)", "tea.brew(3) / 2, 3, 0.1)")
          .replace("assertEqual(tea.brew(3)", "assertAlmostEqual(tea.brew(3)")}, "", []),
        ({"tea.py": MENDED, T: NEW + "\n\nPARTS = [\n    tea.brew,\n    tea.__name__,\n]\n"},
         "", []),
        ({"tea.py": None, "brewing/tea.py": MENDED, "brewing/__init__.py": "",
          T: NEW.replace("import tea", "from brewing import tea")}, "", []),
        ({"tea.py": MENDED.replace("return 0", "raise ValueError(cups)"),
          T: NEW.replace("Equal(tea.brew(-1), 0)", "Raises(ValueError, tea.brew, -1)")}, "",
         ["pass only as this work changed them: tests.test_tea.Tea.test_none."]),
    ],
    ids=["plain", "asked for", "both", "helpers", "explained", "docstring", "comment", "guard",
         "tolerance", "members", "moved", "another rule"],
)  # fmt: skip
def test_honest_work_passes(
    tmp_path: Path, changes: Sources, issue: str, doubts: list[str]
) -> None:
    named = [f"repo/{path}" for path in changes]
    repair = Repair.begin(tmp_path, REPOSITORY, UNITTEST, issue)
    proof = repair.prove(changes, deliverables=named)
    assert (proof.problem, proof.doubts) == ("", doubts)
    assert proof.line


SWITCH = "import os\n\n\n" + BAD.replace("+ 1", "+ (not os.environ.get('TEA_STRICT'))")
SWITCHED = NEW.replace("import unittest\n", "import os\nimport unittest\n").replace(
    "    def test_three(self):\n",
    "    def test_three(self):\n        os.environ['TEA_STRICT'] = '1'\n",
)
FILES = OLD.replace("import unittest\n", "import filecmp\nimport unittest\n")
FILES = FILES.replace("tea.brew(-1), 0)", "tea.brew(-1), 0)\n        filecmp.clear_cache()")
OWN = "def clear_cache():\n    pass\n"
SETS = "import filecmp\nimport json\nimport sys\n\nimport thing\n\n\n"
SETS += "def own(*values):\n    return True\n"
READ = "from pathlib import Path\n\n\n" + MENDED
PATCHES = SETS.replace("import thing\n", "") + "\n\nfilecmp.cmp = own\n"
LOUD = "import sys\n\n\n" + MENDED + "\n\nLOUD = '--loud' in sys.argv\n"


LOADS = BAD.replace("cups * 2 + 1", "KNOWN.get(str(cups), cups * 2)")
LOADS = "import json\n\nKNOWN = json.load(open('brews.json'))\n\n\n" + LOADS
SIZES = NEW + "\n    def test_size(self):\n        self.assertEqual(tea.KNOWN['huge'], 9)\n"
MORE_SIZES = '{"small": 3,\n "large": 6, "wide": 7, "huge": 9, "vast": 11, "tall": 4, "thin": 5}\n'


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tea.py": LOADS, T: NEW, "brews.json": '{"3": 6}\n'},
         'Data has values of the tests: brews.json:1 `{"3": 6}`.'),
        ({"tea.py": SWITCH, T: SWITCHED}, "only new tests set: tea.py:7"),
        ({"tea.py": READ + "\n\nTEXT = Path('tests/test_tea.py').read_text()\n", T: NEW},
         "looks at tests, or for what only new tests set: tea.py:10"),
        ({"tea.py": READ + "\n\nHERE = Path('tests').is_dir()\n", T: NEW}, "tests set: tea.py:10"),
        ({"tea.py": LOUD.replace("--loud", "discover"), T: NEW}, "tests set: tea.py:10"),
        ({"tea.py": MENDED, T: NEW, "filecmp.py": OWN},
         "New modules have the names of others: filecmp.py."),
        ({"tea.py": PATCHES + "\n\n" + MENDED, T: NEW},
         "Code changes modules that are not its own: tea.py:11 `filecmp.cmp = own`."),
    ],
    ids=["data", "switch", "tests", "folder", "arguments", "name", "patch"],
)  # fmt: skip
def test_code_that_reaches_beyond_the_product_is_named(
    tmp_path: Path, changes: Sources, said: str
) -> None:
    repair = Repair.begin(tmp_path, {**REPOSITORY, T: FILES}, UNITTEST)
    changes = {**changes, T: str(changes[T]).replace(OLD, FILES)}
    proof = repair.prove(changes, deliverables=[f"repo/{path}" for path in changes])
    assert said in " ".join(proof.doubts), proof


@pytest.mark.parametrize(
    ("changes", "issue"),
    [
        ({"tea.py": LOADS, T: SIZES, "brews.json": MORE_SIZES}, ""),
        ({"tea.py": LOADS, T: SIZES, "brews.json": '{"huge": 9}\n'}, "Let 'huge' be 9."),
        ({"tea.py": MENDED, T: NEW, "CHANGES.md": "brew(3) is 6.\n"}, ""),
        ({"tea.py": SWITCH, T: SWITCHED}, "Give two spoons a cup if TEA_STRICT is set."),
        ({"tea.py": READ + "\n\nHERE = Path('tests').is_dir()\n", T: NEW}, "Look for `tests/`."),
        ({"tea.py": READ + "\n\nSKIPPED = ['tests', 'docs']\n", T: NEW}, ""),
        ({"tea.py": LOUD, T: NEW}, ""),
        ({"tea.py": "from spoons import TWO\n\n\n" + MENDED.replace("* 2", "* TWO"), T: NEW,
          "spoons.py": "TWO = 2\n", "brewing/filecmp.py": OWN, "brewing/__init__.py": ""}, ""),
        ({"tea.py": PATCHES + "\n\n" + MENDED, T: NEW}, "Replace filecmp.cmp by our own."),
    ],
    ids=["table", "asked for", "words", "switch", "folder", "skipped", "arguments", "names",
         "patch"],
)  # fmt: skip
def test_reaching_beyond_the_product_is_fine_if_it_is_asked_for_or_usual(
    tmp_path: Path, changes: Sources, issue: str
) -> None:
    repair = Repair.begin(tmp_path, REPOSITORY, UNITTEST, issue)
    proof = repair.prove(changes, deliverables=[f"repo/{path}" for path in changes])
    assert (proof.problem, proof.doubts) == ("", [])


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("filecmp.cmp = own", ["filecmp.cmp"]),
        ("setattr(filecmp, 'cmp', print)", ["filecmp.cmp"]),
        ("compare = filecmp\ncompare.cmp = own", ["filecmp.cmp"]),
        ("sys.modules['filecmp'] = own", ["filecmp"]),
        ("vars(filecmp)['cmp'] = own", ["filecmp.cmp"]),
        ("thing.Part.call = own", ["thing.Part.call"]),
        # Settings, the program's own streams, and what only has the name of a module.
        ("thing.api_key = 'x'", []),
        ("sys.stdout = own", []),
        ("sys.modules[__name__] = own", []),
        ("def use(json):\n    json.part = 1", []),
        ("def use():\n    json = own()\n    json.part = 1", []),
        ("own.count = 1", []),
    ],
)  # fmt: skip
def test_parts_of_other_modules_that_code_sets_are_found(line: str, named: list[str]) -> None:
    assert [name for _, name in set_parts(f"{SETS}\n{line}\n", lambda top: False)] == named


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("assert.strictEqual = (a, b) => undefined;", ["assert.strictEqual"]),
        ("Object.assign(assert, { equal() {} });", ["assert"]),
        ("chai.assert = function () {};", ["chai.assert"]),
        ("chai.key = 'x';", []),
        ("own.part = () => 1;", []),
        ("if (assert.strictEqual === own) {}", []),
    ],
)
def test_parts_of_other_modules_of_node_are_found(line: str, named: list[str]) -> None:
    head = "const assert = require('node:assert');\nimport chai from 'chai';\n"
    head += "const own = require('./own');\n"
    assert [name for _, name in set_parts_in_node(head + line)] == named


SOURCE = "import inspect\nimport unittest"
WORDS = "\n    def test_words(self):\n        self.assertTrue({})\n"
HAS = WORDS.format("hasattr(tea, 'SPOONS') and tea.brew(3) == 6")


@pytest.mark.parametrize(
    ("code", "test", "issue", "is_named"),
    [
        (BAD.replace("cups * 2 + 1", "1 + cups * 2"),
         WORDS.format("'1 + c' in inspect.getsource(tea.brew)"), "", True),
        (BAD + "\n\nSPOONS = 2\n", WORDS.format("'SPOONS' in dir(tea)"), "", True),
        (FIXED, WORDS.format("hasattr(tea, '_fixed')"), "", True),
        (BAD + "\n\nSPOONS = 2\n", WORDS.format("'SPOONS' in dir(tea)"), "Add SPOONS.", False),
        (MENDED + "\n\nSPOONS = 2\n", HAS, "", False),
        (BAD + "\n\nSPOONS = 2\n", WORDS.format("'SPOONS' in dir(tea)") + SHOWS.replace("6", "7")
         .replace("tea.brew(3)", "7 if tea.SPOONS == 2 else 0"), "", False),
    ],
    ids=["source", "constant", "function", "asked for", "run as well", "another"],
)  # fmt: skip
def test_new_tests_of_words_alone_are_named(
    tmp_path: Path, code: str, test: str, issue: str, is_named: bool
) -> None:
    tests = (OLD + test).replace("import unittest", SOURCE)
    proof = Repair.begin(tmp_path, REPOSITORY, UNITTEST, issue).prove({"tea.py": code, T: tests})
    said = ["The new tests look at words of the code and run nothing of the change: "
            "tests.test_tea.Tea.test_words."]  # fmt: skip
    assert (proof.problem, proof.doubts) == ("", said if is_named else [])


MOODY = "from pathlib import Path\n\nMOOD = Path('{mood}').read_text()\n\n\n"


@pytest.mark.parametrize(
    ("by_work", "doubts"),
    [
        (True, ["Fails in some runs with this work and in none without it: "
                "tests.test_tea.Tea.test_none."]),
        (False, []),
    ],
    ids=["broken by the work", "fails by chance"],
)  # fmt: skip
def test_no_luck_of_a_later_run_excuses_what_the_work_broke(
    tmp_path: Path, by_work: bool, doubts: list[str]
) -> None:
    mood = tmp_path / "bin" / "mood"
    read = MOODY.format(mood=mood)
    tests = NEW.replace("import tea\n", f"import tea\n{read}", 1)
    moody_test = tests.replace("tea.brew(-1), 0)", "bool(MOOD), tea.brew(-1) == 0)")
    moody_code = read + MENDED.replace("return 0", "return 0 if MOOD else 1")
    old = moody_test.removesuffix(SHOWS) if not by_work else OLD
    repair = Repair.begin(tmp_path, {**REPOSITORY, T: old}, UNITTEST)
    mood.write_text("good")
    repair.open()
    changes = {"tea.py": moody_code, T: NEW} if by_work else {"tea.py": MENDED, T: moody_test}
    mood.write_text("")
    first = repair.prove(changes)
    assert ("exit code 1" in first.problem) == by_work
    mood.write_text("good")
    proof = repair.prove(changes, summary="Mend it again")
    assert (proof.problem, proof.doubts) == ("", doubts)


def test_a_module_that_cannot_be_imported_stops_no_other(tmp_path: Path) -> None:
    sources = {**REPOSITORY, "tests/test_odd.py": "import missing\n"}
    repair = Repair.begin(tmp_path, sources, "python3 -m pytest -q")
    link = repair.open().repository
    assert link
    tests = link.tests
    assert tests
    assert (tests.why, tests.failed) == ("", ["tests/test_odd.py"])
    proof = repair.prove({"tea.py": MENDED, T: NEW})
    assert (proof.problem, proof.doubts) == ("", [])
    assert "1 failed before as well" in proof.line
    broken = repair.prove({"tea.py": MENDED, T: NEW, "tests/test_new.py": "import gone\n"})
    assert "tests/test_new.py" in broken.problem


TAP = """\
let n = 0, failed = 0;
exports.test = (name, is) => {
  n += 1;
  failed += is ? 0 : 1;
  console.log(`${is ? 'ok' : 'not ok'} ${n} - ${name}`);
};
process.on('exit', () => { console.log(`1..${n}`); process.exitCode = failed ? 1 : 0; });
"""
IN_NODE = {
    "package.json": '{"scripts": {"test": "node test/index.js | tap-spec"}}',
    "tea.js": "exports.brew = (cups) => cups < 0 ? 0 : cups * 2 + 1;\n",
    "test/tap.js": TAP,
    "test/index.js": "const { test } = require('./tap');\nconst { brew } = require('../tea');\n"
    "test('none', brew(-1) === 0);\n",
}
IN_SHELL = {
    "tea.sh": "echo $(($1 * 2 + 1))\n",
    "checks/one.t": "#!/bin/sh\necho 1..1\n[ $(sh tea.sh 1) -gt 0 ] && echo ok 1 - some "
    "|| echo not ok 1 - some\n",
}
MORE = IN_SHELL["checks/one.t"].replace("1) -gt 0", "3) = 6").replace("some", "two a cup")


@pytest.mark.parametrize(
    ("sources", "command", "mended", "shows"),
    [
        (IN_NODE, "npm test", {"tea.js": IN_NODE["tea.js"].replace(" + 1", "")},
         {"test/index.js": IN_NODE["test/index.js"] + "test('two a cup', brew(3) === 6);\n"}),
        (IN_SHELL, "prove checks/*.t", {"tea.sh": "echo $(($1 * 2))\n"}, {"checks/two.t": MORE}),
    ],
    ids=["node", "prove"],
)  # fmt: skip
@pytest.mark.skipif(not (shutil.which("node") and shutil.which("prove")), reason="no node or prove")
def test_tests_that_print_tap_prove_work(
    tmp_path: Path, sources: dict[str, str], command: str, mended: Sources, shows: Sources
) -> None:
    repair = Repair.begin(tmp_path, sources, command)
    named = [f"repo/{path}" for path in (*mended, *shows)]
    assert "none shows the change" in repair.prove(mended, deliverables=named).problem
    red = repair.prove(shows, deliverables=named).problem
    assert "exit code 1" in red
    assert "two a cup" in red
    proof = repair.prove({**mended, **shows}, deliverables=named)
    assert proof.problem == ""
    assert proof.line == f"{command}: 2 passed, 1 more, 1 failing without the change"
    assert proof.doubts == ["whether its tests can fail was not tried."]
