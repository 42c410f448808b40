"""The sampler against laws known exactly and against independent samplers.

Statistical tests have fixed seeds; the chance that a correct sampler fails one is stated with each
(5 standard errors: 6e-7 for a normal mean; "t": Student's law of the chains).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import special, stats

from numerics.order_parameters import top_one_order_parameters
from replica.errors import InvalidInput
from validate.problems import make_problem
from validate.sampler import Overlap, Sample, measure_overlap, sample, sample_rows
from validate.sampler.cone import Cone, ExplicitCone, cone_of
from validate.sampler.diagnostics import effective_sample_size, r_hat
from validate.sampler.dynamics import Motion, SamplerDrift

FloatArray = NDArray[np.float64]
KINDS = ("gaussian", "decoupled", "original")


def chain_error(values: FloatArray) -> tuple[float, float]:
    """Mean of (chains, samples) and its standard error from the independent chain means."""
    means = values.mean(axis=1)
    return float(means.mean()), float(means.std(ddof=1) / math.sqrt(means.size))


def agrees(values: FloatArray, exact: float, chance: float = 1e-6) -> bool:
    """Whether the mean agrees with `exact` by Student's test over chains; fails with `chance`."""
    mean, error = chain_error(values)
    return abs(mean - exact) <= stats.t.isf(chance / 2, values.shape[0] - 1) * error


def rejection(rows: FloatArray, count: int, seed: int) -> FloatArray:
    """Exact independent draws of N(0, I) given A w > 0: draw, keep what fits."""
    generator = np.random.default_rng(seed)
    kept: list[FloatArray] = []
    while sum(len(block) for block in kept) < count:
        w = generator.standard_normal((200_000, rows.shape[1]))
        kept.append(w[(w @ rows.T > 0).all(axis=1)])
    return np.concatenate(kept)[:count]


def inside(rows: FloatArray) -> FloatArray:
    """A point of the cone, by rejection."""
    return rejection(rows, 1, 99)[0]


def dense(cone: Cone) -> FloatArray:
    """The matrix A column by column through `apply`."""
    eye = torch.eye(cone.size, dtype=torch.float64)
    return cone.apply(eye).T.numpy()


# --- the constraint operators --------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(4, 3, 6, None), (3, 4, 5, 3), (3, 3, 7, 2)])
def test_cones_are_those_of_the_problems(
    kind: str, shape: tuple[int, int, int, int | None]
) -> None:
    """A w, a_i, A a_i and |a_i|^2 agree with the problem's margins and with the explicit matrix."""
    dim, dim_out, facts, competitors = shape
    problem = make_problem(
        kind, dim=dim, dim_out=dim_out, facts=facts, competitors=competitors, seed=(5, 1)
    )
    cone = cone_of(problem)
    w = torch.from_numpy(np.random.default_rng(0).standard_normal((3, cone.size)))
    margins = problem.margins(w.unflatten(1, (dim_out, dim))).flatten(1).numpy()
    a = dense(cone)
    norms = np.linalg.norm(a, axis=1)
    if kind == "gaussian":  # rows of unit length there
        assert np.allclose(norms, 1.0)
        explicit = np.stack(
            [
                problem.adjoint(one.view(facts, -1)).flatten().numpy()
                for one in torch.eye(cone.rows, dtype=torch.float64)
            ]
        )
        margins = margins / np.linalg.norm(explicit, axis=1)
    assert np.allclose(cone.apply(w).numpy(), margins, atol=1e-12)
    index = torch.tensor([0, cone.rows - 1, cone.rows // 2])
    assert np.allclose(cone.row(index).numpy(), a[index.numpy()], atol=1e-12)
    assert np.allclose(cone.response(index).numpy(), a[index.numpy()] @ a.T, atol=1e-12)
    assert np.allclose(cone.squares.numpy(), norms**2)


def test_large_explicit_cones_need_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = torch.from_numpy(np.random.default_rng(0).standard_normal((6, 3)))
    table = ExplicitCone(matrix)
    monkeypatch.setattr("validate.sampler.cone.GRAM_ENTRIES", 35)
    product = ExplicitCone(matrix)
    assert product._gram is None
    index = torch.tensor([1, 4])
    assert torch.allclose(table.response(index), product.response(index), atol=1e-14)


# --- the motion ----------------------------------------------------------------------------------


def reference_path(
    rows: FloatArray, w: FloatArray, p: FloatArray, duration: float
) -> tuple[FloatArray, FloatArray, int]:
    """The same motion by scanning a fine time grid for sign changes and bisecting each."""
    bounces = 0
    left = duration
    while left > 0:
        step, t, hit = 1e-4, 0.0, None
        while t < left and hit is None:
            s = min(t + step, left)
            there = rows @ (w * math.cos(s) + p * math.sin(s))
            if (there < 0).any():
                hit = (t, s)
            t = s
        if hit is None:
            w, p = w * math.cos(left) + p * math.sin(left), p * math.cos(left) - w * math.sin(left)
            return w, p, bounces
        low, high = hit
        for _ in range(60):
            middle = (low + high) / 2
            out = (rows @ (w * math.cos(middle) + p * math.sin(middle)) < 0).any()
            low, high = (low, middle) if out else (middle, high)
        w, p = w * math.cos(low) + p * math.sin(low), p * math.cos(low) - w * math.sin(low)
        wall = rows[int(np.argmin(rows @ (w + 1e-9 * p)))]
        p = p - 2 * (wall @ p) / (wall @ wall) * wall
        bounces += 1
        left -= low
    return w, p, bounces


def test_trajectories_match_a_scan_of_time() -> None:
    rows = np.random.default_rng(3).standard_normal((7, 4))
    rows[:, 0] += 1.5
    start = inside(rows)
    cone = ExplicitCone(torch.from_numpy(rows))
    for k in range(5):
        momentum = np.random.default_rng(k).standard_normal(4)
        motion = Motion(cone, torch.from_numpy(start)[None], 1.5)
        motion.refresh(torch.tensor([0]), torch.from_numpy(momentum)[None])
        while not motion.step().numel():
            pass
        w, p, bounces = reference_path(rows, start, momentum, 1.5)
        assert int(motion.bounces[0]) == bounces
        assert np.allclose(motion.w[0].numpy(), w, atol=1e-8)
        assert np.allclose(motion.p[0].numpy(), p, atol=1e-8)


def run_motion(motion: Motion, momenta: torch.Tensor) -> None:
    """One trajectory of every chain of `motion`."""
    everyone = torch.arange(momenta.shape[0])
    motion.refresh(everyone, momenta)
    running = set(everyone.tolist())
    while running:
        running -= set(motion.step().tolist())


@pytest.mark.parametrize("kind", KINDS)
def test_motion_conserves_energy_and_is_reversible(kind: str) -> None:
    """Back with -p each chain returns to its start: the map is an involution, as HMC needs."""
    problem = make_problem(kind, dim=6, facts=6, seed=2)
    drawn = sample(problem, chains=3, samples=1, warmup=3, seed=0)
    start = torch.from_numpy(drawn.points[:, 0])
    motion = Motion(cone_of(problem), start, 1.2)
    momenta = torch.from_numpy(np.random.default_rng(1).standard_normal(start.shape))
    run_motion(motion, momenta)
    there = int(motion.bounces.sum())
    assert there >= 6
    energy = start.square().sum(1) + momenta.square().sum(1)
    assert torch.allclose(motion.w.square().sum(1) + motion.p.square().sum(1), energy, rtol=1e-12)
    motion.settle(torch.arange(3))
    run_motion(motion, -motion.p)
    assert int(motion.bounces.sum()) == there
    assert torch.allclose(motion.w, start, atol=1e-9)
    assert torch.allclose(-motion.p, momenta, atol=1e-9)
    assert motion.drift < 1e-13


def test_drift_is_noticed() -> None:
    cone = ExplicitCone(torch.eye(3, dtype=torch.float64))
    motion = Motion(cone, torch.ones(1, 3, dtype=torch.float64), 1.0)
    motion.u += 1e-6
    with pytest.raises(SamplerDrift, match="drifted by"):
        motion.settle(torch.tensor([0]))


def test_duplicate_and_nearly_parallel_walls_keep_the_chain_inside() -> None:
    rows = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 1e-12], [0.0, 1.0], [2.0, 0.0]])
    drawn = sample_rows(rows, start=np.ones(2), chains=8, samples=150, seed=0)
    assert drawn.least_margin >= 0
    assert agrees(drawn.points[..., 0], math.sqrt(2 / math.pi))


# --- known laws ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 5, 30])
def test_positive_orthant(n: int) -> None:
    """|Z_i| are independent half-normals; q = n (E|Z_1| / E|Z|)^2. False alarms: 4e-6."""
    drawn = sample_rows(np.eye(n), start=np.ones(n), chains=12, samples=120, seed=n)
    x = drawn.points
    assert (x > 0).all()
    assert agrees(x.mean(axis=-1), math.sqrt(2 / math.pi))
    assert agrees(np.square(x).mean(axis=-1), 1.0)
    assert agrees((x**4).mean(axis=-1), 3.0)
    if n > 1:
        pair = x[..., 0] * x[..., 1]
        assert agrees(pair, 2 / math.pi)
        norm = math.sqrt(2) * special.gamma((n + 1) / 2) / special.gamma(n / 2)
        q = measure_overlap(drawn)
        low, high = q.interval(1 - 1e-6)
        assert low < n * (2 / math.pi) / norm**2 < high
        assert q.stderr < 0.03
        assert q.converged


def test_orthant_coordinate_law() -> None:
    """The whole law, not moments only: Kolmogorov-Smirnov on thinned draws. False alarm: 1e-5."""
    drawn = sample_rows(np.eye(4), start=np.ones(4), chains=8, samples=400, seed=8)
    thinned = drawn.points[:, ::10, 0].ravel()
    assert stats.kstest(thinned, stats.halfnorm.cdf).pvalue > 1e-5


def test_wedge_angle_is_uniform() -> None:
    """Between two lines of R^2 at any angle the direction is uniform. False alarm: 1e-5 each."""
    for angle in (0.3, 1.0, 3.0):
        rows = np.array([[0.0, 1.0], [math.sin(angle), -math.cos(angle)]])
        start = np.array([math.cos(angle / 2), math.sin(angle / 2)])
        drawn = sample_rows(rows, start=start, chains=8, samples=200, seed=4)
        theta = np.arctan2(drawn.points[..., 1], drawn.points[..., 0])[:, ::10].ravel() / angle
        assert stats.kstest(theta, stats.uniform.cdf).pvalue > 1e-5


@pytest.mark.parametrize(
    ("rows", "dim", "shift"), [(1, 5, 0.0), (4, 5, 0.0), (9, 6, 1.5), (30, 5, 3.0)]
)
def test_halfspaces_against_rejection(rows: int, dim: int, shift: float) -> None:
    """Random halfspaces (M = 1) against draws kept by rejection. False alarms: 3e-6 each."""
    a = np.random.default_rng((rows, dim)).standard_normal((rows, dim))
    a[:, 0] += shift
    exact = rejection(a, 20_000, seed=1)
    drawn = sample_rows(a, start=exact[0], chains=12, samples=80, seed=2)
    unit = exact / np.linalg.norm(exact, axis=1, keepdims=True)
    probe = np.random.default_rng(7).standard_normal(dim)
    for mine, theirs in (
        (drawn.directions @ probe, unit @ probe),
        (np.square(drawn.directions @ probe), np.square(unit @ probe)),
        ((drawn.points @ a.T).min(axis=-1), (exact @ a.T).min(axis=-1)),
    ):
        mean, error = chain_error(mine)
        other = theirs.std(ddof=1) / math.sqrt(theirs.size)
        allowed = stats.t.isf(5e-7, 11) * math.hypot(error, other)
        assert abs(mean - theirs.mean()) < allowed
        assert allowed < 0.5 * theirs.std()


def gibbs(rows: FloatArray, start: FloatArray, sweeps: int, seed: int) -> FloatArray:
    """Another sampler of the same law: one coordinate at a time from its truncated normal."""
    generator = np.random.default_rng(seed)
    w = start.copy()
    margins = rows @ w
    found = np.empty((sweeps, w.size))
    for k in range(sweeps):
        for i in range(w.size):
            column = rows[:, i]
            rest = margins - column * w[i]
            with np.errstate(divide="ignore", invalid="ignore"):
                limits = -rest / column
            low = limits[column > 0].max(initial=-np.inf)
            high = limits[column < 0].min(initial=np.inf)
            a, b = special.ndtr(low), special.ndtr(high)
            w[i] = np.clip(special.ndtri(a + (b - a) * generator.random()), low, high)
            margins = rest + column * w[i]
        found[k] = w
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_recall_problems_against_gibbs(kind: str) -> None:
    """Overlap at d = 5 from the margins of the problem, and from Gibbs on the explicit matrix.

    False alarm: 1e-6 (normal law of the difference, with both errors from 8 chains doubled).
    """
    problem = make_problem(kind, dim=5, facts=6, seed=11)
    mine = measure_overlap(sample(problem, chains=8, samples=100, warmup=20, seed=0))
    rows = dense(cone_of(problem))
    starts = sample(problem, chains=8, samples=1, warmup=1, seed=1).points[:, 0]
    chains = [gibbs(rows, start, 400, seed=k)[50:] for k, start in enumerate(starts)]
    means = np.stack([(c / np.linalg.norm(c, axis=1, keepdims=True)).mean(axis=0) for c in chains])
    gram = means @ means.T
    other = (gram.sum() - np.trace(gram)) / 56
    spread = 2 * np.std([np.delete(gram[k], k).mean() for k in range(8)], ddof=1) / math.sqrt(8)
    assert abs(mine.value - other) < 2 * 4.9 * math.hypot(mine.stderr, spread)
    assert mine.stderr < 0.02
    assert spread < 0.05


# --- the overlap of the Gaussian problem ---------------------------------------------------------


def overlaps(dim: int, facts: int, competitors: int, instances: int, samples: int) -> FloatArray:
    """Sampled overlaps of independent Gaussian instances, all converged."""
    found = []
    for index in range(instances):
        problem = make_problem(
            "gaussian", dim=dim, facts=facts, competitors=competitors, seed=(7, index)
        )
        q = measure_overlap(sample(problem, samples=samples, warmup=8, seed=(8, index)))
        assert q.r_hat < 1.1
        assert q.start_overlap > q.value + 10 * q.stderr
        found.append(q.value)
    return np.array(found)


def student(values: FloatArray, exact: float) -> float:
    """Two-sided p-value of Student's test that the mean is `exact`."""
    return float(stats.ttest_1samp(values, exact).pvalue)


def test_overlap_agrees_with_the_replica_saddle_point() -> None:
    """d = 10, p = 12, M = 11 against `numerics`, which shares no code. False alarm: 1e-3.

    The scaling limit 2 alpha = 0.6 is rejected, so the test can tell theories apart.
    """
    theory = top_one_order_parameters(0.12, 11, samples=1024, seed=1).overlap
    measured = overlaps(10, 12, 11, instances=6, samples=16)
    assert student(measured, theory.value) > 1e-3
    assert student(measured, 2 * 12 * math.log(12) / 100) < 1e-3


@pytest.mark.long
@pytest.mark.parametrize(("dim", "facts", "instances"), [(10, 10, 24), (20, 40, 6)])
def test_overlap_at_two_sizes(dim: int, facts: int, instances: int) -> None:
    """p = d^2 / 10 with 39 competitors: 0.436 from the saddle point. False alarm: 1e-3 each.

    Instances scatter by 0.028 at d = 10, 0.014 at d = 20. At d = 20 this is the problem p = 40
    itself, whose scaling limit 2 alpha = 0.74 is far off.
    """
    theory = top_one_order_parameters(0.1, 39, samples=4096).overlap
    measured = overlaps(dim, facts, 39, instances=instances, samples=30)
    assert student(measured, theory.value) > 1e-3
    assert abs(measured.mean() - 0.74) > 0.2


# --- diagnostics ---------------------------------------------------------------------------------


def autoregressive(phi: float, shape: tuple[int, int], seed: int) -> FloatArray:
    """AR(1) chains of unit variance, started in their stationary law."""
    noise = np.random.default_rng(seed).standard_normal(shape)
    x = np.empty(shape)
    x[:, 0] = noise[:, 0]
    for t in range(1, shape[1]):
        x[:, t] = phi * x[:, t - 1] + math.sqrt(1 - phi**2) * noise[:, t]
    return x


@pytest.mark.parametrize("phi", [-0.5, 0.0, 0.5, 0.9])
def test_effective_size_of_autoregressive_chains(phi: float) -> None:
    """Exactly n (1 - phi) / (1 + phi); the estimate comes within 15 % (about 4 of its errors)."""
    x = autoregressive(phi, (4, 20_000), seed=3)
    assert effective_sample_size(x) == pytest.approx(80_000 * (1 - phi) / (1 + phi), rel=0.15)


def test_r_hat_by_its_definition() -> None:
    x = autoregressive(0.3, (3, 100), seed=1) + np.array([[0.0], [0.3], [0.0]])
    halves = np.concatenate([x[:, :50], x[:, 50:]])
    z = special.ndtri((stats.rankdata(halves).reshape(halves.shape) - 3 / 8) / (300 + 1 / 4))
    grand = z.mean()
    between = 50 / 5 * sum((row.mean() - grand) ** 2 for row in z)
    within = sum(((row - row.mean()) ** 2).sum() / 49 for row in z) / 6
    bulk = math.sqrt((49 / 50 * within + between / 50) / within)
    assert r_hat(x) >= bulk - 1e-12
    assert r_hat(x) == pytest.approx(bulk) or r_hat(x) > bulk


def test_r_hat_sees_shifts_and_different_widths() -> None:
    x = np.random.default_rng(0).standard_normal((4, 400))
    assert r_hat(x) < 1.01
    assert r_hat(x + np.array([[0.0], [0.0], [0.0], [1.0]])) > 1.05
    assert r_hat(x * np.array([[1.0], [1.0], [1.0], [4.0]])) > 1.05
    drifting = x + np.linspace(0, 2, 400)
    assert r_hat(drifting) > 1.05


def test_stuck_chains_are_not_called_converged() -> None:
    points = np.repeat(np.random.default_rng(0).standard_normal((4, 1, 6)), 20, axis=1)
    jitter = 1e-3 * np.random.default_rng(1).standard_normal(points.shape)
    stuck = Sample(
        points + jitter,
        points[:, 0],
        np.ones((4, 20), dtype=np.int64),
        np.random.default_rng(2).random((4, 20)),
        0.0,
        (0,),
    )
    assert not measure_overlap(stuck).converged


def test_equal_draws_have_no_diagnostics() -> None:
    assert math.isnan(r_hat(np.ones((2, 10))))
    assert math.isnan(effective_sample_size(np.ones((2, 10))))


@pytest.mark.parametrize("bad", [np.ones(5), np.ones((2, 3)), np.full((2, 10), np.nan)])
def test_bad_draws_are_refused(bad: Any) -> None:
    with pytest.raises(InvalidInput, match="draws"):
        r_hat(bad)


def test_overlap_intervals_cover() -> None:
    """100 repetitions of a 90 % interval for the octant of R^3 (3/4): P(< 78 covered) = 2e-4."""
    covered = 0
    for seed in range(100):
        drawn = sample_rows(
            np.eye(3), start=np.ones(3), chains=4, samples=8, warmup=2, seed=(6, seed)
        )
        low, high = measure_overlap(drawn).interval(0.9)
        covered += low < 0.75 < high
    assert covered >= 78


# --- behaviour -----------------------------------------------------------------------------------


def test_same_seed_same_points_and_other_seed_others() -> None:
    problem = make_problem("original", dim=4, facts=5, seed=0)
    a, b, c = (sample(problem, chains=2, samples=6, seed=s) for s in (0, 0, 1))
    assert np.array_equal(a.points, b.points)
    assert not np.array_equal(a.points, c.points)
    assert not np.array_equal(a.points[0], a.points[1])
    assert a.points.dtype == np.float64


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 10**6))
def test_points_are_solutions(seed: int) -> None:
    problem = make_problem("decoupled", dim=4, facts=4, seed=seed)
    try:
        drawn = sample(problem, chains=2, samples=4, warmup=2, seed=seed)
    except InvalidInput:
        return  # no solution exists
    W = torch.from_numpy(drawn.points).unflatten(-1, (4, 4))
    assert bool(problem.recalled(W).all())
    assert drawn.least_margin > 0
    assert drawn.drift < 1e-12


def test_bad_requests_are_one_sentence() -> None:
    problem = make_problem("original", dim=4, facts=5, seed=0)
    hopeless = make_problem("original", dim=2, facts=40, seed=0)
    eye = np.eye(2)
    cases: list[tuple[Any, str]] = [
        (lambda: sample(hopeless, seed=0), "no memory that recalls every fact"),
        (lambda: sample(problem, chains=0, seed=0), "chains is 0"),
        (lambda: sample(problem, samples=0, seed=0), "samples is 0"),
        (lambda: sample(problem, seed=-1), "the seed is -1"),
        (lambda: sample(problem, seed=0, duration=4.0), "duration of a trajectory is 4.0"),
        (lambda: sample(problem, seed=0, start=-torch.eye(4)), "lies not inside the cone"),
        (lambda: sample_rows(eye, start=np.array([1.0, -1.0]), seed=0), "lies not inside"),
        (lambda: sample_rows(np.zeros((2, 2)), start=np.ones(2), seed=0), "row 0 .* is zero"),
        (lambda: sample_rows(np.full((2, 2), np.nan), start=np.ones(2), seed=0), "finite"),
        (
            lambda: measure_overlap(sample_rows(eye, start=np.ones(2), chains=2, seed=0)),
            "at least 3",
        ),
        (lambda: Overlap(0.5, 0.1, 8, 10, 80.0, 1.0, 0.6).interval(1.0), "confidence"),
    ]
    for call, match in cases:
        with pytest.raises(InvalidInput, match=match) as caught:
            call()
        assert "\n" not in str(caught.value)
