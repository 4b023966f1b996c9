/* Labels for the selected pictures: the label is typed or chosen, what would change is shown, then it is one commit. */

import { byId, make } from "../kit/elements.js";
import * as review from "../kit/edit-review.js";
import { selection } from "../kit/selection.js";
import * as service from "../kit/service-client.js";
import { count } from "../kit/text-format.js";

/** Connects the button and the dialog, once. enabled(): whether the service lets the library be changed. */
export function connect(enabled) {
  const field = byId("label-name"), problem = byId("label-problem");
  byId("selection-label").addEventListener("click", async () => {
    const shut = !enabled();
    problem.textContent = shut ? SHUT : "";
    for (const each of byId("labelling").querySelectorAll("input, #label-form button:not([data-close])")) each.disabled = shut;
    byId("labelling-title").textContent = `Label ${pictures(selection.size)}`;
    field.value = "";
    byId("labelling").showModal();
    if (shut) return;
    const { labels } = await service.labels().catch(() => ({ labels: [] })); // a label can be typed
    byId("label-names").replaceChildren(...labels.map((value) => make("option", { value })));
  });
  const ask = async (label) => {
    problem.textContent = "";
    const asked = { ids: selection.keys, label };
    try {
      const found = await service.reviewLabels(asked);
      byId("labelling").close();
      show(found, asked);
    } catch (failure) {
      problem.textContent = failure.message;
    }
  };
  byId("label-form").addEventListener("submit", (event) => {
    event.preventDefault();
    ask(field.value);
  });
  byId("label-none").addEventListener("click", () => ask(null));
}

const SHUT = "This service changes nothing. To label pictures here, start one of your own with: lookalike serve --edit";

const pictures = (number) => count(number, "picture");

function show(found, asked) {
  const { label, head, absent } = found;
  const after = label ?? "no label";
  const [other] = found.similar;
  const lines = [
    `${count(found.files, "file")} in one change `, ...(head.labels ? review.onTopOf(head.labels) : ["that makes the repo labels"]), ". lookalike undo takes it back.",
    absent && ` ${pictures(absent)} of the selection ${absent === 1 ? "is" : "are"} not in the library any more.`,
  ].filter(Boolean);
  review.open({
    title: `${found.description}?`,
    sections: found.before.map((each) => section(each, after)),
    words: lines,
    verb: label === null ? "Remove the labels" : `Label ${pictures(found.pictures)}`,
    confirm: found.new && `“${label}” is a new label${other ? `, beside “${other}”` : ""}`,
    act: async () => {
      const done = await service.putLabels({ ...asked, head, new: found.new });
      selection.clear();
      const some = pictures(done.pictures);
      review.report(label === null ? `Labels of ${some} removed.` : `${some} labelled “${label}”.`, done.commit);
    },
  });
}

/** Pictures that have the same labels now, before and after. */
function section({ labels, pictures: number, examples }, after) {
  const before = labels.length ? labels.join(", ") : "no label";
  return make(
    "section",
    { class: "labelled" },
    make("h3", {}, `${pictures(number)}: `, make("bdi", { class: "before" }, before), before === after ? " stays" : [" → ", make("bdi", {}, after)]),
    make("ul", {}, examples.map(({ path, thumbnail }) => make("li", {}, make("img", { src: thumbnail, alt: path, title: path, decoding: "async" })))),
  );
}
