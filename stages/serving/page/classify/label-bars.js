/* Labels with their probabilities, as bars, and what is known of the model that gives them. Knows neither the service nor
 * the address. */

import { make } from "../kit/elements.js";
import { count, likely, number } from "../kit/text-format.js";

/** The labels of pictures. names: of the pictures, shown where there are several. */
export function bars(pictures, names) {
  const several = pictures.length > 1;
  const parts = pictures.map(({ labels }, place) =>
    make(
      "section",
      { "aria-label": `Labels of ${names[place]}` },
      several && make("h2", {}, make("bdi", {}, names[place])),
      make("ol", { class: "labels" }, labels.map(bar)),
    ),
  );
  return make("div", { class: "classified" }, parts);
}

function bar({ label, probability }) {
  const shown = make("div", { class: "share", "aria-hidden": "true" });
  shown.style.setProperty("--share", String(probability));
  return make("li", {}, make("bdi", {}, label), make("span", { class: "count" }, likely(probability)), shown);
}

/** The card of a model: its labels, and the share of pictures that it labels rightly. */
export function card({ labels, model, cross_validation: crossed, held_out: held }) {
  const measured = [crossed && score(crossed, "in cross-validation"), held && score(held, "held out")];
  return make(
    "div",
    { class: "card" },
    make("ul", { class: "chips", "aria-label": "Labels" }, labels.map((each) => make("li", {}, make("bdi", {}, each)))),
    measured.filter(Boolean).map((text) => make("p", { class: "facts" }, text)),
    make("p", { class: "facts" }, `Run: ${model.run}, on ${model.takes} of ${model.backbone.described}`),
  );
}

const score = ({ right, of, accuracy, low, high }, how) =>
  `${likely(accuracy)} right: ${number(right)} of ${count(of, "picture")} ${how}, 95 % interval ${likely(low)} to ${likely(high)}`;
