"""A message's headers and properties as one dict, for the exchange types of the 2005 draft.

A property has its name in the specification, as message-id or content-type (0-9-1 section 1.8, class basic); it goes before a header of
the same name.
"""


def facts_of(properties):
    """Headers and properties in one dict. `properties`: by name, as the wire folder reads them."""
    facts: dict = {}
    facts.update(properties.get("headers") or {})
    for name in properties:
        if name != "headers":
            facts[name.replace("_", "-")] = properties[name]
    return facts
