//! What is lost, what is put together, and what is left alone.

use super::{defined, lost, merge};

const FILE: &str = "\"\"\"Sums.\"\"\"\nimport os\n\n\n# Adds one.\n@cached\ndef one(x):\n    y = x + 1\n    return y\n\n\n@final\nclass Two:\n    \
                    size = 2\n\n    def more(self):\n        pass\n\n\nif __name__ == \"__main__\":\n    one(2)\n";

#[test]
fn what_is_lost_is_named_in_any_language_and_at_any_depth() {
    let cases: [(&str, &str, &[&str]); 8] = [
        (FILE, FILE, &[]),
        (FILE, "", &["`def one(x):`", "`class Two:`", "`def more(self):`"]),
        (FILE, "def one(x, z):\n    return z\nclass Two(One):\n    size = 3\n", &["`def more(self):`"]),
        (
            "class A(E):\n    pass\nclass B(E):\n    pass\n",
            "class C(E):\n    pass\n",
            &["`class A(E):`", "`class B(E):`"],
        ),
        ("func (c *C) Inc() {\n}\nfunc (c *C) Dec() {\n}\n", "func (c *C) Dec() {\n}\n", &["`func (c *C) Inc() {`"]),
        ("pub(crate) fn a() {}\npub(crate) fn b() {}\n", "pub(crate) fn b() {}\n", &["`pub(crate) fn a() {}`"]),
        ("impl fmt::Display for A {\n}\n", "impl fmt::Debug for A {\n}\n", &["`impl fmt::Display for A {`"]),
        ("export function f() {\n}\n", "export default function g() {\n}\n", &["`export function f() {`"]),
    ];
    for (before, after, wanted) in cases {
        assert_eq!(lost(before, after), wanted, "{after}");
    }
}

#[test]
fn only_definitions_define() {
    let text = "for i in range(3):\n    pass\nwith open(x) as f:\n    pass\ndef one(x):\n    def inner():\n        pass\nfunc (c *C) Inc() {\n";
    let mut names: Vec<&str> = defined(text).into_iter().collect();
    names.sort_unstable();
    assert_eq!(names, ["Inc", "one"]);
}

#[test]
fn a_function_alone_takes_its_place_below_its_decorators() {
    for new in ["def one(x):\n    return x + 1", "# words.py\nimport os\n\ndef one(x):\n    return x + 1\n"] {
        let wanted = FILE.replace("    y = x + 1\n    return y\n", "    return x + 1\n");
        assert_eq!(merge(FILE, new).as_deref(), Some(wanted.as_str()), "{new}");
    }
}

#[test]
fn new_functions_and_imports_are_added_and_nothing_is_renamed() {
    let new = "import re\n\ndef first(x):\n    y = x + 1\n    return y\n";
    let wanted = FILE
        .replace("import os\n", "import re\nimport os\n")
        .replace("        pass\n\n\nif", "        pass\n\n\ndef first(x):\n    y = x + 1\n    return y\n\n\nif");
    assert_eq!(merge(FILE, new).as_deref(), Some(wanted.as_str()));
    let short = "def f(a):\n    return a\n\n\ndef total(n):\n    return f(n)\n";
    let wanted = format!("{short}\n\ndef add(a):\n    return a\n");
    assert_eq!(merge(short, "def add(a):\n    return a\n").as_deref(), Some(wanted.as_str()));
}

#[test]
fn what_is_not_sure_is_left_alone() {
    let whole = FILE.replace("size = 2", "size = 3");
    let twice = "def a():\n    x\ndef a():\n    y\ndef z():\n    1\n";
    let in_text = "def usage():\n    print(\"\"\"\nUsage: x\n\"\"\")\n    return 1\n\ndef z():\n    1\n";
    let below = "def a():\n    1\n\n@mark(\n    1,\n)\ndef b():\n    2\n";
    let cases = [
        (FILE, whole.as_str()),
        (FILE, "no block at all"),
        (FILE, ""),
        (FILE, "class Two:\n    size = 3\n"),
        (FILE, "def more(self):\n    return 1\n"),
        (FILE, "@other\ndef one(x):\n    return 1\n"),
        (FILE, "def one(x):\n    return 1\n\nprint(one(2))\n"),
        (FILE, "def one(x):\n    return 1\n\nif __name__ == \"__main__\":\n    one(3)\n"),
        (FILE, "'''Text.'''\ndef one(x):\n    return 1\nelse:\n    2\n"),
        (twice, "def z():\n    2\n"),
        (in_text, "def usage():\n    print(1)\n"),
        (below, "def a():\n    3\n"),
        ("\u{feff}def a():\n    1\n\ndef b():\n    2\n", "def a():\n    3\n"),
        ("def a():\n    1\r\n\ndef b():\n    2\n", "def a():\n    3\n"),
    ];
    for (before, after) in cases {
        assert_eq!(merge(before, after), None, "{after}");
    }
}
