"""A network with its inputs and its start."""
import dataclasses

import numpy as np

from integrate_and_fire import Network


@dataclasses.dataclass
class Case:
    """A network and its inputs; all tables are by step, as Simulation.run takes them."""
    name: str
    net: Network
    steps: int
    fires: dict = dataclasses.field(default_factory=dict)      # neurons that are made to fire: sources, without in-edges
    currents: dict = dataclasses.field(default_factory=dict)
    events: dict = dataclasses.field(default_factory=dict)     # onto v
    synaptic: dict = dataclasses.field(default_factory=dict)   # events into the synapse
    poisson: list = dataclasses.field(default_factory=list)    # the stimuli that events came from, as in a configuration
    v_mv: np.ndarray = None                                    # at the start; None: rest
    counter: np.ndarray = None                                 # steps of rest at the start; None: 0

    def start(self, arithmetic):
        simulation = arithmetic(self.net)
        if self.counter is not None:
            simulation.counter = self.counter.copy()
        if self.v_mv is not None:
            for i, v in enumerate(self.v_mv):
                simulation.set_v(i, float(v))
        return simulation

    def run(self, arithmetic):
        return self.start(arithmetic).run(self.steps, self.fires, self.currents, self.events, self.synaptic)
