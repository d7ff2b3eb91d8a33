"""Each rule of check_layers refuses a tree that breaks it, and accepts the tree that does not."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import check_layers  # noqa: E402

TREE = {
    "docs/architecture.md": "| `include/stax/` | a |\n| `src/upper/` | b |\n| `src/lower/` | c |\n",
    "src/CMakeLists.txt": "stax_layer(upper)\nstax_layer(lower)\n",
    "include/stax/door.h": "#pragma once\n#include <vector>\n",
    "src/upper/a.h": '#pragma once\n#include <fmt/core.h>\n#include "stax/door.h"\n',
    "src/upper/a.cpp": '#include "upper/a.h"\n#include <zlib.h>\n',
    "src/lower/b.cpp": '#include "upper/a.h"\n',
    "tests/unit/upper/a_test.cpp": '#include "lower/missing_is_fine_in_comments.h"\n'.replace("#", "// #"),
}


def problems(**changes):
    tree = dict(TREE, **{path: text for path, text in changes.get("files", {}).items()})
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for path, text in tree.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        return check_layers.Checker(root, sorted(pathlib.Path(path) for path in tree)).run()


class CheckLayers(unittest.TestCase):
    def refuses(self, path, text, message):
        found = problems(files={path: text})
        self.assertEqual(len(found), 1, found)
        self.assertIn(message, found[0])
        self.assertTrue(found[0].startswith(path), found[0])

    def test_accepts_a_sound_tree(self):
        self.assertEqual(problems(), [])

    def test_lower_layer(self):
        found = problems(files={"src/upper/a.cpp": '#include "lower/b.h"\n', "src/lower/b.h": "#pragma once\n"})
        self.assertEqual(found, ["src/upper/a.cpp:1: src/upper/ may not include the lower layer src/lower/ (lower/b.h)"])

    def test_include_that_is_not_from_a_root(self):
        self.refuses("src/upper/a.cpp", '\n#include "a.h"\n', "write includes from there")

    def test_commented_include_is_no_include(self):
        self.assertEqual(problems(files={"src/upper/a.cpp": '// #include "a.h"\n/* #include "a.h" */\n'}), [])

    def test_cycle(self):
        found = problems(
            files={
                "src/upper/c.h": '#pragma once\n#include "upper/d.h"\n',
                "src/upper/d.h": '#pragma once\n#include "upper/c.h"\n',
            }
        )
        self.assertEqual(len(found), 1)
        self.assertIn("include cycle: src/upper/c.h -> src/upper/d.h -> src/upper/c.h", found[0])

    def test_long_file(self):
        self.refuses("src/upper/a.cpp", "\n" * 1001, "1001 lines")
        self.assertEqual(problems(files={"src/upper/a.cpp": "\n" * 1000}), [])

    def test_thread_local_state(self):
        self.refuses("src/upper/a.cpp", "thread_local int depth;\n", "thread-local")

    def test_long_function(self):
        def function(lines):
            return "namespace a {\n\nint f(int x,\n      int y) {\n" + "  x;\n" * lines + "}\n\nint t[] = {\n" + "  1,\n" * 200 + "};\n\n}  // namespace a\n"

        self.assertEqual(problems(files={"src/upper/a.cpp": function(118)}), [])
        self.refuses("src/upper/a.cpp", function(121), "a function of 123 lines")

    def test_public_header_with_internal_header(self):
        self.refuses("include/stax/x.h", '#pragma once\n#include "upper/a.h"\n', "internal")

    def test_public_header_with_third_party_header(self):
        self.refuses("include/stax/x.h", "#pragma once\n#include <fmt/core.h>\n", "standard library")

    def test_internal_header_with_third_party_header(self):
        self.refuses("src/upper/x.h", "#pragma once\n#include <nlohmann/json.hpp>\n", "third-party")

    def test_public_macro(self):
        self.refuses("include/stax/x.h", "#pragma once\n#define CHECK 1\n", "prefix STAX_")
        self.assertEqual(problems(files={"include/stax/x.h": "#pragma once\n#define STAX_CHECK 1\n"}), [])

    def test_header_without_guard(self):
        self.refuses("src/upper/x.h", "int f();\n", "#pragma once")

    def test_angle_brackets_for_own_headers(self):
        self.refuses("src/upper/a.cpp", "#include <stax/door.h>\n", 'write "stax/door.h"')

    def test_unknown_layer(self):
        found = problems(files={"src/third/a.cpp": ""})
        self.assertEqual(found, ["docs/architecture.md:1: the table of layers lacks src/third/"])

    def test_order_of_the_build(self):
        self.refuses("src/CMakeLists.txt", "stax_layer(lower)\nstax_layer(upper)\n", "not in the order")


if __name__ == "__main__":
    unittest.main()
