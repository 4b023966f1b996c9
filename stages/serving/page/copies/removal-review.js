/* The dialog that shows what a removal would take and leave, as the service sees it, before anything is removed. */

import { button, byId, make } from "../kit/elements.js";
import { names } from "./copy-groups.js";
import * as words from "../kit/text-format.js";

/** Shows a review: {count, bytes, groups}, on top of a commit. remove(): removes them; what it throws is shown in the dialog. */
export function open(review, head, remove) {
  const dialog = byId("review");
  const problem = make("p", { role: "alert" });
  const going = button(`Remove ${words.count(review.count, "file")}`, null, async () => {
    going.disabled = true;
    problem.textContent = "";
    try {
      await remove();
      dialog.close();
    } catch (failure) {
      problem.textContent = failure.message;
      going.disabled = false;
    }
  }, { class: "primary" });
  byId("review-title").textContent = `Remove ${words.count(review.count, "file")}?`;
  byId("review-groups").replaceChildren(...review.groups.map(section));
  byId("review-words").replaceChildren(
    `${words.bytes(review.bytes)} in one change on top of commit `,
    make("code", { title: head }, head.slice(0, 12)),
    ". Older versions of the library keep the files: lookalike undo takes the change back.",
  );
  byId("review-actions").replaceChildren(going, button("Cancel", null, () => dialog.close()), problem);
  dialog.showModal();
}

const section = ({ remove, stay }) =>
  make(
    "section",
    {},
    make("h3", {}, "Goes"),
    make("ul", {}, names(remove)),
    make("h3", {}, "Stays"),
    make("ul", {}, names(stay)),
  );
