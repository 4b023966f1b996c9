// The client of a service of lookalike: openapi-fetch with the types of its OpenAPI document, which `npm run generate`
// writes to schema.ts, and what a document cannot say: the token, and files beside a question.

import createClient, { type Client } from "openapi-fetch";

import type { components, paths } from "./schema.js";

type Schemas = components["schemas"];
export type Question = Schemas["SearchRequest"];
export type Answer = Schemas["SearchBody"];
export type Refusal = Schemas["RefusalBody"];

export type LookalikeClient = Client<paths>;

/** A client of the service at a URL, such as http://127.0.0.1:30680. token: that of `lookalike serve --token-file`. */
export function lookalike(baseUrl: string, token = ""): LookalikeClient {
    const headers = token ? { Authorization: `Bearer ${token}` } : {};
    return createClient<paths>({ baseUrl, headers });
}

/** The body of POST /search or /classify for a question about files: `client.POST("/search", upload([file], { k: 5 }))`. */
export function upload<Request extends object>(files: readonly Blob[], request: Request) {
    const form = new FormData();
    form.append("request", new Blob([JSON.stringify(request)], { type: "application/json" }));
    files.forEach((file, number) => form.append("picture", file, `picture-${number}`));
    return { body: { request, picture: [] as string[] }, bodySerializer: () => form };
}

/** The answer to a single question, out of what POST /search gives for one or several. */
export function single(found: Answer | Schemas["SearchesBody"] | undefined): Answer {
    if (found === undefined || "answers" in found) {
        throw new TypeError("this is not the answer to one question");
    }
    return found;
}
