// The page "Dead letters": groups, the dead letters that match, one of them, and replays and drops.
import { card, pageHead, toast } from "../lib/ui.js";
import { h, when } from "../lib/view.js";
import { acting } from "./dead_act.js";
import { deadFilters, groupCard } from "./dead_groups.js";
import { oneLetter } from "./dead_letter.js";
import { letterCard } from "./dead_letters.js";
import { deadState, OPEN } from "./dead_state.js";
import { actionTable, busyReason, jobFailure, jobFeed, jobTable, runningJobs } from "./jobs.js";
import { jobLevel, results } from "./words.js";

export default function deadPage() {
  const state = deadState();
  const ended = (/** @type {import("../api").Job} */ job) => {
    toast([`Job ${job.job} ended (${job.state}): ${results(job.sinks)}`, jobFailure(job)], jobLevel(job));
    state.version.value++;
  };
  const jobs = jobFeed(ended, () => state.version.value);
  const busy = () => (acting.value ? "An action is being started." : busyReason(jobs));
  return h(
    "div",
    null,
    pageHead("Dead letters"),
    h(
      "p",
      { class: "mu" },
      "Events that a sink rejected permanently. Fix the cause, then replay them: each goes to its own sink under its id.",
    ),
    runningJobs(jobs),
    deadFilters(state),
    h(
      "div",
      { class: () => (state.open.value ? "split even" : null) },
      h("div", { class: "stack" }, groupCard(state), letterCard(state, busy)),
      when(
        () => state.open.value !== "",
        () => h("div", { class: "sticky", id: OPEN, tabindex: "-1" }, () => oneLetter(state.open.value, state, busy)),
      ),
    ),
    card({ title: "Replays and drops", note: "the last 64" }, jobTable(jobs)),
    card(
      { title: "Actions", note: "of operators, the last 256" },
      actionTable(() => state.version.value),
    ),
  );
}
