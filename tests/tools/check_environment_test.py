"""check_environment sees variables without a row, and rows without a variable."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import check_environment  # noqa: E402

ROWS = "| variable | meaning |\n| --- | --- |\n| `STAX_ONE` | one |\n| `STAX_TWO`, `STAX_THREE` | see `STAX_ONE` |\n"
CPP, SHELL = pathlib.Path("src/upper/a.cpp"), pathlib.Path("tools/a.sh")


class CheckEnvironment(unittest.TestCase):
    def problems(self, text, path=CPP, document=ROWS):
        known = 'f("STAX_ONE"); f("STAX_TWO"); f("STAX_THREE");'
        return check_environment.problems_of(document, [(pathlib.Path("src/upper/b.cpp"), known), (path, text)])

    def test_accepts_what_has_a_row(self):
        self.assertEqual(self.problems('std::getenv("STAX_ONE")'), [])
        self.assertEqual(self.problems("#define STAX_MACRO 1  // STAX_MACRO"), [])

    def test_refuses_what_has_none(self):
        for path, text in (
            (CPP, 'std::getenv("STAX_FOUR")'),
            (CPP, 'variable("STAX_FOUR=" + path)'),
            (CPP.with_suffix(".py"), "os.environ.get('STAX_FOUR')"),
            (SHELL, "${STAX_FOUR:-1}"),
            (pathlib.Path("Makefile"), "echo $STAX_FOUR"),
        ):
            self.assertEqual(self.problems(text, path), [f"{path}:1: STAX_FOUR has no row in docs/environment.md"])

    def test_knows_those_of_the_tests_driver(self):
        problems = ["src/upper/a.cpp:1: FAKE_CUDA_FIVE has no row in docs/environment.md"]
        self.assertEqual(self.problems('std::getenv("FAKE_CUDA_FIVE")'), problems)
        self.assertEqual(self.problems('std::getenv("FAKE_CUDA_FIVE")', document=ROWS + "| `FAKE_CUDA_FIVE` | 5 |\n"), [])

    def test_refuses_rows_that_nothing_reads(self):
        stale = ROWS + "| `STAX_FOUR` | four |\n"
        self.assertEqual(self.problems("", document=stale), ["docs/environment.md:1: nothing reads STAX_FOUR"])


if __name__ == "__main__":
    unittest.main()
