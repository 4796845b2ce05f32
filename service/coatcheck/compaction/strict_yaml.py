"""An operator's YAML: plain values only, and no mapping that says a field twice, since the second would stand in silence."""

from __future__ import annotations

from collections.abc import Hashable

import yaml


class NotYaml(Exception):
    """What cannot be read: the message says why, and names no content but a field that stands twice."""


def load(content: bytes) -> object:
    """The one document of ``content``. Raises NotYaml."""
    try:
        loader = _Loader(content)
        try:
            return loader.get_single_data()
        finally:
            loader.dispose()
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        raise NotYaml("is no YAML") from error


class _Loader(yaml.SafeLoader):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
        names = [self.construct_object(name, deep=True) for name, _ in node.value]
        if twice := [name for place, name in enumerate(names) if name in names[:place]]:
            raise NotYaml(f"says {str(twice[0])[:40]} twice")
        return super().construct_mapping(node, deep)
