"""check_docs finds exactly the marked blocks, and notices a block that fails or prints something else."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import check_docs  # noqa: E402

FENCE = "`" * 3


def block(kind, code):
    return f"{FENCE}{kind}\n{code}{FENCE}\n"


class CheckDocs(unittest.TestCase):
    def test_finds_marked_blocks(self):
        text = "Title\n" + block("cpp", "no\n") + block("sh run", "echo a\n") + block("text output", "a\n")
        self.assertEqual(check_docs.blocks(text), [("sh", 5, "echo a\n", "a\n")])

    def test_output_belongs_to_the_block_before(self):
        with self.assertRaises(ValueError):
            check_docs.blocks(block("sh run", "echo a\n") + "prose\n" + block("text output", "a\n"))

    def complaints(self, text):
        return check_docs.check({"page.md": text}, "unused", ".")

    def test_runs_shell_blocks(self):
        self.assertEqual(self.complaints(block("sh run", "echo a\n") + block("text output", "a\n")), (1, []))

    def test_notices_failure(self):
        count, found = self.complaints(block("sh run", "false\ntrue\n"))
        self.assertEqual((count, len(found)), (1, 1))
        self.assertIn("page.md:1: exit status 1", found[0])

    def test_notices_other_output(self):
        _, found = self.complaints(block("sh run", "echo b\n") + block("text output", "a\n"))
        self.assertIn("expected\na", found[0])


if __name__ == "__main__":
    unittest.main()
