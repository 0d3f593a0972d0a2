"""No two modules import each other: each can be read, tested and replaced alone."""

from __future__ import annotations

import grimp
import networkx

PACKAGES = ("tradeoff",)


def test_no_modules_import_each_other() -> None:
    graph = grimp.build_graph(*PACKAGES, exclude_type_checking_imports=True)
    imports = networkx.DiGraph((a, b) for a in graph.modules for b in graph.find_modules_directly_imported_by(a))
    knots = [sorted(knot) for knot in networkx.strongly_connected_components(imports) if len(knot) > 1]
    assert knots == []
