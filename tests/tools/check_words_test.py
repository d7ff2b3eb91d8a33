"""Each rule of check_words refuses the text that breaks it."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import check_words  # noqa: E402

PATH = pathlib.Path("src/upper/a.cpp")


class CheckWords(unittest.TestCase):
    def refuses(self, line):
        found = check_words.problems_of_text(PATH, f"fine\n{line}\nfine\n")
        self.assertEqual(len(found), 1, (line, found))
        self.assertTrue(found[0].startswith(f"{PATH}:2: "), found[0])

    def test_accepts_prose(self):
        text = "A path such as build/release/bin or $HOME/x.\nSee https://arxiv.org/abs/1.\na / home\n"
        self.assertEqual(check_words.problems_of_text(PATH, text), [])

    def test_marks_of_unfinished_work(self):
        for word in ("TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK"):
            self.refuses(f"// {word}: later")

    def test_paths_of_a_machine(self):
        for folder in ("home", "root", "Users", "mnt"):
            self.refuses(f'"/{folder}/someone/file"')

    def test_addresses(self):
        self.refuses("see http" + "://unknown.invalid/page")

    def test_blanks(self):
        self.refuses("end ")
        self.refuses("a\tb")
        self.refuses("end\rx")

    def test_merge_marks(self):
        self.refuses("<" * 7 + " ours")

    def test_end_of_file(self):
        self.assertIn("no line break", check_words.problems_of_text(PATH, "text")[0])

    def test_large_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "large")
            path.write_bytes(b"\0" * (check_words.MAX_BYTES + 1))
            self.assertIn("bytes", check_words.check(pathlib.Path(folder), [pathlib.Path("large")])[0])


if __name__ == "__main__":
    unittest.main()
