# data: yes
"""The spikes of the larval brain, a real graph, do not depend on ranks, order and checkpoints."""
from real_data import need
from side_by_side import path, run_tests
from sim_tools import Spikes, check, run, simulate

larva, = need("larva_edges.txt")


def test_larva():
    """The larval brain, 119,010 edges: 1 and 3 ranks, ordered and not."""
    for name, words in (("plain.h5", ["--no-order"]), ("ordered.h5", [])):
        code, _, err = run("convert", "--edges", larva, "--output", path(name), *words)
        check(code == 0, err)
    config = {"threshold": 300, "decay_shifts": [4], "refractory_steps": 5,
              "stimulus": [{"neurons": "all", "kind": "poisson", "rate_hz": 5, "weight": 400}]}
    simulate(path("plain.h5"), config, 300, "one")
    simulate(path("ordered.h5"), config, 300, "three", "--checkpoint-every", 77, n=3)
    one, three = Spikes("one"), Spikes("three")
    check(len(one.node) > 1000, len(one.node), "spikes")
    three.same(one, "larva")


run_tests(globals())
