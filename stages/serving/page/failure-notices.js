/* The words and the ways out when something fails: a refusal, a picture that is gone, a missing token. */

import { button, make } from "./kit/elements.js";
import { notice } from "./kit/notices.js";
import * as moves from "./kit/query-links.js";
import * as service from "./kit/service-client.js";
import { sentence } from "./kit/text-format.js";
import { anywhere } from "./search/search-suggestions.js";

/** Shows a failure. hooks: again() asks again, choose() lets the user choose a picture, signedIn(). Throws what is not a
 * failure of the service's, once it is shown. */
export function show(failure, hooks) {
  if (failure.name === "AbortError") return; // the user went on
  const again = button("Try again", "again", hooks.again);
  const choose = button("Choose another picture", "picture", hooks.choose, { class: "primary" });
  if (failure.status === 401) {
    signIn(hooks.signedIn);
  } else if (failure.code === "bad-filter") {
    const unfiltered = () => moves.set({ where: null, filter: null });
    const remove = button("Remove the filters", "close", unfiltered, { class: "primary" });
    notice("refused", "This filter cannot be used", sentence(failure.message), { actions: [remove] });
  } else if (failure.code === "no-text-tower") {
    const named = () => moves.list({ where: anywhere(moves.state().text) });
    const names = button("Find names and values", "search", named, { class: "primary" });
    notice("refused", "This model does not know words", sentence(failure.message), { actions: [names] });
  } else if (failure instanceof service.Refusal) {
    const title = failure.code === service.UPLOAD_GONE ? "This picture is no longer here" : "That did not work";
    notice("refused", title, sentence(failure.message), { actions: [choose, again] });
  } else {
    notice("refused", "The page failed", `${failure.message}. Reload it; if that does not help, report it.`);
    throw failure;
  }
}

function signIn(done) {
  const field = make("input", { type: "password", id: "token", autocomplete: "current-password", required: true });
  const user = make("input", { type: "text", autocomplete: "username", value: "lookalike", hidden: true }); // for password stores
  const problem = make("p", { role: "alert" });
  const form = make(
    "form",
    { class: "signin" },
    user,
    make("label", { for: "token" }, "Token"),
    field,
    make("button", { class: "primary" }, "Sign in"),
    problem,
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await service.signIn(field.value.trim());
    } catch (failure) {
      problem.textContent = failure.message;
      return field.select();
    }
    return done();
  });
  const text = "This service needs a token; ask the person who started it. A cookie keeps you signed in until you sign out.";
  notice("hint", "Sign in", text).append(form);
  field.focus();
}
