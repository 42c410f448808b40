"""Exact Hamiltonian motion of a standard Gaussian inside a cone (Pakman and Paninski 2014).

Between walls  w(t) = w cos t + p sin t,  p(t) = -w sin t + p cos t,  so margin i is
u_i cos t + v_i sin t with u = A w, v = A p, and first vanishes at t = arccot(-v_i / u_i) < pi: the
first wall is the one of least v_i / u_i, with no angle computed for the others. At the wall
p -> p - 2 (a_i . p) a_i / |a_i|^2. Energy (|w|^2 + |p|^2) / 2 and phase-space volume are conserved
exactly, so no step is ever rejected.

The chains of a batch move independently: each refreshes its momentum when its own time is over.
"""

from __future__ import annotations

import math

import torch

from validate.sampler.cone import Cone

Tensor = torch.Tensor

DRIFT_ALLOWED = 1e-9
"""Largest accepted |propagated - recomputed margin| / (|a_i| |w|) over one trajectory."""


class SamplerDrift(ArithmeticError):
    """Rounding errors of one trajectory exceeded `DRIFT_ALLOWED`; discard the sample."""


class Motion:
    """Positions `w`, momenta `p` (C, N), margins `u`, `v` (C, n) and bounces of C chains."""

    def __init__(self, cone: Cone, w: Tensor, duration: float) -> None:
        chains = w.shape[0]
        self.cone, self.w, self.duration = cone, w.clone(), duration
        self.p = torch.zeros_like(self.w)
        self.u, self.v = cone.apply(self.w), torch.zeros(chains, cone.rows).to(self.w)
        self.left = self.w.new_zeros(chains)
        self.bounces = torch.zeros(chains, dtype=torch.int64, device=w.device)
        self.drift = 0.0
        self._scale = cone.squares.sqrt()
        self._all = torch.arange(chains, device=w.device)

    def refresh(self, chains: Tensor, momenta: Tensor) -> None:
        """Give the chains with these indices new momenta and a full duration; recompute margins."""
        self.p[chains] = momenta
        self.v[chains] = self.cone.apply(momenta)
        self.left[chains] = self.duration
        self.bounces[chains] = 0

    def settle(self, chains: Tensor) -> Tensor:
        """Replace the propagated margins of finished chains by fresh ones and check the drift.

        Returns their least margins a_i . w / (|a_i| |w|).
        """
        fresh = self.cone.apply(self.w[chains])
        size = self._scale * self.w[chains].norm(dim=1, keepdim=True)
        worst = float(((fresh - self.u[chains]).abs() / size).amax())
        self.drift = max(self.drift, worst)
        if not worst <= DRIFT_ALLOWED:
            raise SamplerDrift(
                f"the margins drifted by {worst:.1e} in one trajectory, more than "
                f"{DRIFT_ALLOWED:.0e}; the instance is too ill-scaled to be sampled in float64"
            )
        self.u[chains] = fresh
        return (fresh / size).amin(dim=1)

    def step(self) -> Tensor:
        """Move every chain to its next wall, or to the end of its time.

        Returns the indices of the chains whose time has just run out.
        """
        # Rounding may leave a touched margin just below 0. A margin 0 with v < 0 is a wall touched
        # now (slope -inf, time 0), with v > 0 a wall just left (slope inf).
        self.u.clamp_(min=0.0)
        slope = (self.v / self.u).nan_to_num_(nan=math.inf, posinf=math.inf, neginf=-math.inf)
        steepest, wall = slope.min(dim=1)
        time = torch.atan2(torch.ones_like(steepest), -steepest)
        moving = self.left > 0
        hits = moving & (time < self.left)
        time = torch.where(hits, time, self.left)
        self._rotate(time)
        self.left = torch.where(hits, self.left - time, 0.0)
        hitting = self._all[hits]
        if hitting.numel():
            self._reflect(hitting, wall[hitting])
        return self._all[moving & ~hits]

    def _rotate(self, time: Tensor) -> None:
        c, s = time.cos()[:, None], time.sin()[:, None]
        self.w, self.p = _turn(self.w, self.p, c, s)
        self.u, self.v = _turn(self.u, self.v, c, s)

    def _reflect(self, chains: Tensor, wall: Tensor) -> None:
        speed = self.v[chains, wall]
        factor = (2.0 * speed / self.cone.squares[wall])[:, None]
        self.p[chains] -= factor * self.cone.row(wall)
        self.v[chains] -= factor * self.cone.response(wall)
        self.u[chains, wall] = 0.0
        self.v[chains, wall] = speed.abs()
        self.bounces[chains] += 1


def _turn(x: Tensor, y: Tensor, c: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
    """(c x + s y, c y - s x)."""
    return (x * c).addcmul_(y, s), (y * c).addcmul_(x, s, value=-1.0)
