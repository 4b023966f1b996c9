/* The dialog that shows what a change would do, as the service sees it, before anything is changed; and the line that says
 * what was done, with the way back. Knows no change. */

import { button, byId, make } from "./elements.js";
import * as notices from "./notices.js";
import * as service from "./service-client.js";

/** Shows a review. sections: elements; words: on the commit that it is made on top of. verb: on the button. confirm: what
 * has to be ticked first, "" for nothing. act(): makes the change; what it throws is shown in the dialog. */
export function open({ title, sections, words, verb, confirm = "", act }) {
  const dialog = byId("review");
  const problem = make("p", { role: "alert" });
  const sure = make("input", { type: "checkbox", on: { change: () => (going.disabled = !sure.checked) } });
  const going = button(verb, null, async () => {
    going.disabled = true;
    problem.textContent = "";
    try {
      await act();
      dialog.close();
    } catch (failure) {
      problem.textContent = failure.message;
      going.disabled = false;
    }
  }, { class: "primary", disabled: Boolean(confirm) });
  byId("review-title").textContent = title;
  byId("review-groups").replaceChildren(...sections);
  byId("review-words").replaceChildren(...words);
  const check = confirm && make("label", { class: "check" }, sure, confirm);
  byId("review-actions").replaceChildren(...[check, going, button("Cancel", null, () => dialog.close()), problem].filter(Boolean));
  dialog.showModal();
}

/** The words on a commit. */
export const onTopOf = (head) => ["on top of commit ", make("code", { title: head }, head.slice(0, 12))];

/** Says what was done, until it is closed or the next change. commit: that takes it back. */
export function report(words, commit) {
  const undo = button("Undo", null, async () => {
    undo.disabled = true;
    try {
      const { description } = await service.undo(commit);
      say(`Taken back: ${description}`);
    } catch (failure) {
      say(failure.message);
    }
  }, { "aria-label": `Undo: ${words}` });
  say(words, undo);
}

function say(words, ...actions) {
  const place = byId("done");
  place.replaceChildren(make("div", { class: "banner" }, make("p", {}, words), actions, notices.closing(place)));
  notices.tell(words);
}
