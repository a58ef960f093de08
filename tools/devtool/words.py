"""The words that no variable, argument, function or attribute of the product may be called: they name no object. A row a word, with advice.

Comments and docstrings may use them; so may tests/. dev.py check asks `word_faults` of each file.
"""

import ast

OF_AN_OBJECT = "name the object: queue, exchange, entry, message, row, record, value"
OF_A_SENTENCE = "name the noun that it stands for: subject, kind, part, reason"
OF_AN_ANSWER = "name what it holds: sentences, properties, figures, answer"
OF_AN_ACT = "name what is done, in a verb of the protocol: ingest, acknowledge, hold, check, calculate"
WORDS = {
    "found": OF_AN_OBJECT,
    "thing": OF_AN_OBJECT,
    "things": OF_AN_OBJECT,
    "something": OF_AN_OBJECT,
    "anything": OF_AN_OBJECT,
    "it": OF_AN_OBJECT,
    "this": OF_AN_OBJECT,
    "that": OF_AN_OBJECT,
    "these": OF_AN_OBJECT,
    "those": OF_AN_OBJECT,
    "them": OF_AN_OBJECT,
    "they": OF_AN_OBJECT,
    "what": OF_A_SENTENCE,
    "whatever": OF_A_SENTENCE,
    "who": OF_A_SENTENCE,
    "whom": OF_A_SENTENCE,
    "told": OF_AN_ANSWER,
    "take": OF_AN_ACT,
    "taken_again": OF_AN_ACT,
    "look_at": OF_AN_ACT,
    "done_with": OF_AN_ACT,
}


def name_made(node):
    """The name that a node gives a variable, an argument, a function, a class or an attribute, without underscores around it; else ''."""
    name: object = ""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.ExceptHandler)):
        name = node.name
    elif isinstance(node, ast.arg):
        name = node.arg
    elif isinstance(node, ast.alias):
        name = node.asname
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        name = node.id
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        name = node.attr
    return str(name or "").strip("_")


def word_faults(path, tree):
    """A sentence for each name of `tree` that is one of WORDS."""
    for node in ast.walk(tree):
        advice = WORDS.get(name_made(node))
        if advice is not None:
            yield f"{path}:{getattr(node, 'lineno', 0)}: nothing is called {name_made(node)}: {advice}"
