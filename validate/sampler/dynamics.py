"""Exact Hamiltonian motion of a standard Gaussian inside a cone (Pakman and Paninski 2014).

Between walls  w(t) = w cos t + p sin t,  p(t) = -w sin t + p cos t,  so margin i is
u_i cos t + v_i sin t with u = A w, v = A p, and first vanishes at t = arccot(-v_i / u_i) < pi: the
first wall is the one of least v_i / u_i, with no angle computed for the others. At the wall
p -> p - 2 (a_i . p) a_i / |a_i|^2. Energy (|w|^2 + |p|^2) / 2 and phase-space volume are conserved
exactly, so no step is ever rejected.

The chains of a batch move independently: each refreshes its momentum when its own time is over.
"""

from __future__ import annotations

import torch

from validate.sampler.cone import Cone

Tensor = torch.Tensor

TINY = 1e-300
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
        self._one = self.w.new_ones(chains)

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
        # Rounding may leave a touched margin at 0 or just below. It is then made positive and tiny:
        # with v < 0 that is a wall touched now (time 0), with v > 0 a wall just left.
        self.u.clamp_(min=TINY)
        steepest, wall = (self.v / self.u).min(dim=1)
        time = torch.atan2(self._one, -steepest)
        moving, hits = self.left > 0, time < self.left
        time = torch.minimum(time, self.left)
        self.left -= time
        c, s = time.cos()[:, None], time.sin()[:, None]
        self.w, self.p = _turn(self.w, self.p, c, s)
        self.u, self.v = _turn(self.u, self.v, c, s)
        self._reflect(hits, wall)
        ended = moving & ~hits
        return self._all[ended]

    def _reflect(self, hits: Tensor, wall: Tensor) -> None:
        """Reverse the speed normal to the wall, in the chains that hit theirs."""
        place = wall[:, None]
        speed = self.v.gather(1, place)[:, 0]
        factor = torch.where(hits, 2.0 * speed / self.cone.squares[wall], 0.0)[:, None]
        self.p -= factor * self.cone.row(wall)
        self.v -= factor * self.cone.response(wall)
        # Exact values at the wall, so that rounding cannot make the chain hit it again at once.
        touched = torch.where(hits, 0.0, self.u.gather(1, place)[:, 0])
        leaving = torch.where(hits, speed.abs(), speed)
        self.u.scatter_(1, place, touched[:, None])
        self.v.scatter_(1, place, leaving[:, None])
        self.bounces += hits


def _turn(x: Tensor, y: Tensor, c: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
    """(c x + s y, c y - s x)."""
    return (x * c).addcmul_(y, s), (y * c).addcmul_(x, s, value=-1.0)
