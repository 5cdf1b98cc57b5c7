#!/usr/bin/env python3
"""Every rule of tidy.py can fail: a small tree that breaks each one, and a tree that breaks none."""

import tempfile
import unittest
from pathlib import Path

import tidy


def broken(files):
    """The names of the rules that a tree with these files breaks."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "src").mkdir()
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return {rule for rule, _, found in tidy.problems(root) if found}


README = {"src/core/README.md": "# core\n"}


class Rules(unittest.TestCase):
    def breaks(self, rule, name, text):
        self.assertEqual(broken({**README, name: text}), {rule}, f"{name}: {text[:80]!r}")

    def keeps(self, name, text):
        self.assertEqual(broken({**README, name: text}), set(), f"{name}: {text[:80]!r}")

    def test_an_include_upwards_is_refused(self):
        self.breaks("layers", "src/core/a.cpp", '#include "store/store.hpp"\n')
        self.keeps("src/core/a.cpp", '#include "base/result.hpp"\n#include "core/b.hpp"\n')

    def test_a_name_upwards_is_refused_without_an_include(self):
        self.breaks("layers", "src/core/a.cpp", "void f(store::Session& s);\n")
        self.breaks("layers", "src/core/a.cpp", "berth::engine::Runs* runs;\n")
        self.keeps("src/core/a.cpp", "// store::Session\nint core::of(base::Time at);\n")

    def test_a_route_names_nothing_below_the_engine(self):
        readme = {"src/http/README.md": "# http\n"}
        for name in ("store::RunFilter", "places::Input", "keepers::Ended", "vault::Vault"):
            self.assertEqual(broken({**readme, "src/http/routes/a.cpp": f"void f({name} a);\n"}), {"layers"}, name)
        self.assertEqual(broken({**readme, "src/http/routes/a.cpp": "void f(api::Table& a, engine::Runs& b);\n"}),
                         set())

    def test_a_long_function_is_refused_and_a_table_is_not(self):
        lines = "  f();\n" * 70
        self.breaks("functions", "src/core/a.cpp", f"namespace a {{\nint g() {{\n{lines}}}\n}}\n")
        self.breaks("functions", "src/core/a.cpp", f"class A {{\n void g() const {{\n{lines}}}\n}};\n")
        self.keeps("src/core/a.cpp", "int g() {\n" + "  // why\n\n  f();\n" * 65 + "}\n")
        rows = "      {1, 2},\n" * 90
        self.keeps("src/core/a.cpp", f"std::vector<A> g() {{\n  return {{\n{rows}  }};\n}}\n")
        self.keeps("src/core/a.cpp", f"constexpr auto a = std::to_array<A>({{\n{rows}}});\n")

    def test_a_wide_interface_is_refused(self):
        def interface(count):
            verbs = "".join(f"  virtual Task<> f{i}(const A& a, int b) const = 0;\n" for i in range(count))
            return f"#pragma once\nclass A : public B {{\n public:\n{verbs}  virtual void g() {{}}\n}};\n"

        self.breaks("interfaces", "src/core/a.hpp", interface(13))
        self.keeps("src/core/a.hpp", interface(12))
        self.keeps("src/core/a.hpp", interface(12) + interface(12).replace("#pragma once\n", "").replace("A", "C"))

    def test_an_id_that_is_made_from_another_is_refused(self):
        self.breaks("banned", "src/core/a.cpp", "auto id = *core::LeaseId::parse(sandbox.id.str());\n")
        self.keeps("src/core/a.cpp", "auto id = core::LeaseId::parse(text);\nauto t = id.str();\n")

    def test_a_folder_of_too_many_files_is_refused(self):
        many = {f"src/core/a{i}.hpp": "#pragma once\n" for i in range(40)}
        tests = {f"src/core/a{i}_test.cpp": f'#include "core/a{i}.hpp"\n' for i in range(30)}
        self.assertEqual(broken({**README, **many}), {"folders"})
        many.pop("src/core/a0.hpp")
        tests.pop("src/core/a0_test.cpp")
        self.assertEqual(broken({**README, **many, **tests}), set())

    def test_words_of_a_private_dialect_are_refused(self):
        self.breaks("words", "src/core/a.cpp", "// A port is no number.\n")
        self.breaks("words", "src/core/a.cpp", 'fail("whoever asks");\n')
        self.breaks("words", "docs/a.md", "# a\nThe caller is told.\n")
        self.keeps("src/core/a.cpp", "// It is no longer there.\n")
        self.keeps("docs/a.md", "# a\n`test_a_port_is_no_number`, `is no`\n")

    def test_a_folder_outside_the_table_is_refused(self):
        self.assertEqual(broken({"src/misc/a.cpp": "", "src/misc/README.md": "# misc\n"}), {"layers"})

    def test_banned_words_are_refused_in_code_and_allowed_in_prose(self):
        for text in ("asio::detached", "using namespace std;", "std::thread t;", "catch (...) {}",
                     "try {", "std::getenv(name)", "struct RunData {", "co_spawn(ex, f)",
                     "sleep_for(1s)", "system(text)"):
            self.breaks("banned", "src/core/a.cpp", text + "\n")
            self.keeps("src/core/a.cpp", f'// {text}\nconst char* a = "{text}";\n')
        self.keeps("src/core/a.cpp", "using namespace std::chrono_literals;\n")

    def test_a_banned_word_with_a_reason_is_allowed(self):
        self.keeps("tests/a.cpp", "sleep_for(1s);  // allowed: the client is slow on purpose\n")
        self.breaks("banned", "tests/a.cpp", "sleep_for(1s);  // allowed:\n")

    def test_json_is_looked_into_by_decoders_only(self):
        self.breaks("banned", "src/core/a.cpp", "config.if_contains(key);\n")
        self.keeps("src/core/config/bindings.cpp", "config.if_contains(key);\n")
        self.keeps("tests/a.cpp", "config.if_contains(key);\n")

    def test_nolint_needs_a_reason_and_todo_a_kind(self):
        self.breaks("remarks", "src/core/a.cpp", "int a;  // NOLINT\n")
        self.breaks("remarks", "src/core/a.cpp", "// TODO: later\n")
        self.keeps("src/core/a.cpp", "int a;  // NOLINT(misc-x): the C interface wants it\n")
        self.keeps("src/core/a.cpp", "// TODO(scale): Read by offset.\n")

    def test_long_lines_and_long_files_are_refused(self):
        self.breaks("shape", "src/core/a.cpp", "int " + "a" * 100 + ";\n")
        self.breaks("shape", "src/core/a.cpp", "// " + "a" * 120 + "\n")
        self.keeps("src/core/a.cpp", "// " + "a" * 110 + "\n")
        self.breaks("shape", "src/core/a.cpp", "\n" * 601)
        self.breaks("shape", "src/core/a.cpp", "int a; \n")

    def test_headers_and_first_includes_are_checked(self):
        self.breaks("headers", "src/core/a.hpp", "// words\n#pragma once\n")
        files = {**README, "src/core/a.hpp": "#pragma once\n"}
        late = '#include <map>\n#include "core/a.hpp"\n'
        self.assertEqual(broken({**files, "src/core/a.cpp": late}), {"headers"})
        self.assertEqual(broken({**files, "src/core/a_test.cpp": '#include "core/a.hpp"\n'}), set())

    def test_a_folder_without_a_short_readme_is_refused(self):
        self.assertEqual(broken({"src/core/a.cpp": ""}), {"folders"})
        self.assertEqual(broken({"src/core/README.md": "# core\n" + "\n" * 30}), {"folders"})

    def test_documents_have_one_title_and_living_links(self):
        self.breaks("prose", "docs/a.md", "no title\n")
        self.breaks("prose", "docs/a.md", "# one\n# two\n")
        self.breaks("prose", "docs/a.md", "# a\n[gone](b.md)\n")
        self.keeps("docs/a.md", "# a\n```\n# a comment\n```\n[core](../src/core/README.md#x)\n")

    def test_a_promise_names_a_test_that_exists(self):
        files = {**README, "src/core/a_test.cpp": "TEST(A, Holds) {}\n",
                 "tests/e2e/b_test.py": "def test_it_holds(self):\n"}
        for word, rules in (("`A.Holds`", set()), ("`A.*`", set()), ("`A.Ho...`", set()),
                            ("`b_test.py: it_holds`", set()), ("`b_test.py`", set()),
                            ("`A.Breaks`", {"promises"}), ("`A.Hold`", {"promises"}),
                            ("`b_test.py: it`", {"promises"}), ("`c_test.py`", {"promises"})):
            document = f"# Guarantees\n| promise | {word} |\n"
            self.assertEqual(broken({**files, "docs/guarantees.md": document}), rules, word)

    def test_a_name_in_an_unnamed_namespace_is_unique_in_its_library(self):
        source = "namespace berth::{scope} {{\nnamespace {{\n\n{text}\n\n}}  // namespace\n}}  // namespace\n"
        first = {**README, "src/core/a.cpp": source.format(scope="core", text="int one(int a = {}) {\n  return a;\n}\n"
                 "constexpr int most[] = {1};\nstruct Shape : Base {\n  int inner;\n};\nusing Row = A<int>;\n"
                 "template <class T>\n  requires Small<T>\nT two(T t) {\n  return t;\n}\nconst auto three = [](int a) { return a; };")}
        for text in ("void one() {\n}", "constexpr int most = 2;", "enum class Shape { flat };", "using Row = B;",
                     "Result<std::map<A, B>> two() {\n}", "[[maybe_unused]] int three(int);"):
            again = source.format(scope="core", text=text)
            self.assertEqual(broken({**first, "src/core/b/c.cpp": again}), {"unnamed"}, text)
            self.assertEqual(broken({**first, "src/core/b_test.cpp": again}), set(), "another program")
            other = source.format(scope="core::b", text=text)
            self.assertEqual(broken({**first, "src/core/b/c.cpp": other}), set(), "another namespace")
        for text in ("int inner;", "int a = one();", "int Shape::one() {\n  return inner;\n}", "using b::one;",
                     "#define TWICE(x) \\\n  one(x);  \\\n  most", "static_assert(one(1) == 1);", "// int one();"):
            self.assertEqual(broken({**first, "src/core/b/c.cpp": source.format(scope="core", text=text)}), set(), text)
        self.assertEqual(broken({**first, "src/core/b.cpp": "namespace berth::core {\nint one() {\n}\n}\n"}), set())

    def test_the_sources_of_a_test_program_are_compiled_together(self):
        source = "namespace {\nint one() {\n  return 1;\n}\n}  // namespace\n"
        files = {"tests/contract/a_test.cpp": source, "tests/contract/b_test.cpp": source}
        together = "berth_test(both_test LABEL contract\n  SOURCES a_test.cpp b_test.cpp\n  DEPENDS berth_core)\n"
        alone = "berth_test(a_test SOURCES a_test.cpp)\nberth_test(b_test SOURCES b_test.cpp DEPENDS berth_core)\n"
        self.assertEqual(broken({**files, "tests/contract/CMakeLists.txt": together}), {"unnamed"})
        self.assertEqual(broken({**files, "tests/contract/CMakeLists.txt": alone}), set())


if __name__ == "__main__":
    unittest.main()
