"""A synthetic screening study, from results to decisions: `make demo` runs it. Short enough to read."""

import binreps as br

# 1. Read: one row per replicate. Missing results are no replicates.
screening = br.load_screening().to_arrow()
counts = br.count_table(screening, individual="individual", result="result")
print("READ", counts, sep="\n")

# 2. Fit: prevalence and error rates, without knowing anyone's status.
fits = [br.fit_average(counts), br.fit_median(counts), br.fit_map(counts), br.fit_bayes(counts)]
rates = {"rate": fits[0].summary()["rate"]}
rates |= {fit.method: fit.summary()["estimate"] for fit in fits}
print("\nRATES", br.Table(rates), sep="\n")
print(fits[-1])

# 3. Decide: a wrong answer costs 1, an inconclusive one 0.2. What to answer for the next individual?
loss = br.Loss(inconclusive=0.2)
print("\nNEXT INDIVIDUAL", br.decision_table(fits[-1], loss, replicates=[2, 3, 4]), sep="\n")

# 4. Judge: the truth, which no fit has seen, says how good the decisions for everyone in the study were.
truth = {row["individual"]: row["truth"] for row in br.load_screening()}
for fit in fits:
    scored = br.attach(screening, fit, loss=loss, individual="individual", result="result").to_pydict()
    judged = br.evaluate(scored["score"], [truth[name] for name in scored["individual"]], loss)
    print(f"\nDECISIONS BY {fit.method.upper()}", judged.confusion, sep="\n")
    shares = f"sensitivity {judged.sensitivity:.3f}, specificity {judged.specificity:.3f}"
    print(f"{shares}, total risk {judged.total_risk:.1f} of {judged.individuals}")
