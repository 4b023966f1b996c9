// A real service with real pictures: LOOKALIKE_URL and LOOKALIKE_TOKEN name it, LOOKALIKE_PICTURE is a file of its
// library, and LOOKALIKE_VECTOR that picture's vector, as a list of JSON.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { lookalike, single, upload, type Answer } from "../src/client.js";

const url = process.env["LOOKALIKE_URL"] ?? "";
const token = process.env["LOOKALIKE_TOKEN"] ?? "";
const file = new Blob([readFileSync(process.env["LOOKALIKE_PICTURE"] ?? "")]);
const vector = JSON.parse(process.env["LOOKALIKE_VECTOR"] ?? "[]") as number[];

const client = lookalike(url, token);

async function asked(options: Parameters<typeof upload>[1] = {}): Promise<Answer> {
    const { data, error } = await client.POST("/search", upload([file], { k: 3, ...options }));
    assert.equal(error, undefined);
    return single(data);
}

test("the status of the service", async () => {
    const { data } = await client.GET("/status");
    assert.equal(data?.state, "ready");
    assert.equal(data?.embeds, true);
    assert.ok((data?.pictures ?? 0) > 20);
});

test("an upload finds the picture itself, and so do its id and its vector", async () => {
    const found = await asked();
    const nearest = found.neighbors[0];
    assert.ok(nearest?.same && nearest.distance === 0 && nearest.sources[0]?.path.endsWith(".png"));
    const ids = found.neighbors.map((each) => each.id);

    const byId = await client.POST("/search", { body: { id: nearest.id, k: 3 } });
    assert.deepEqual(single(byId.data).neighbors.map((each) => each.id), ids);

    const byVector = await client.POST("/search", { body: { vector, k: 3 } });
    assert.deepEqual(single(byVector.data).neighbors.map((each) => each.id), ids);
});

test("filters admit only their pictures", async () => {
    const inside = await asked({ filter: "trip/north/" });
    assert.ok(inside.neighbors.length > 0);
    assert.ok(inside.neighbors.every((each) => each.sources[0]?.path.startsWith("trip/north/")));
    const small = await client.POST("/search", upload([file], { where: "width < 10" }));
    assert.deepEqual(single(small.data).neighbors, []);
});

test("several questions have an answer each, or the reason why not", async () => {
    const { data } = await client.POST("/search", { body: { requests: [{ vector, k: 1 }, { vector: [1] }] } });
    assert.ok(data !== undefined && "answers" in data);
    const [first, second] = data.answers;
    assert.ok(first !== undefined && "neighbors" in first && first.neighbors.length >= 1);
    assert.ok(second !== undefined && "error" in second);
    assert.equal(second.error.code, "wrong-dimension");
});

test("errors say their code and a sentence", async () => {
    const missing = await client.POST("/search", { body: { id: "0".repeat(64) } });
    assert.equal(missing.response.status, 404);
    assert.equal(missing.error?.error.code, "not-in-library");
    const { error } = await client.POST("/search", upload([new Blob(["no picture"])], {}));
    assert.equal(error?.error.code, "not-a-picture");
    assert.match(error?.error.message ?? "", /\w+ \w+/);
});

test("the library is listed, and its pictures are fetched", async () => {
    const { data } = await client.GET("/library", { params: { query: { folder: "trip/south", limit: 5 } } });
    const listed = data?.pictures[0];
    assert.ok(listed !== undefined);
    const facets = await client.GET("/facets", { params: { query: { columns: "width" } } });
    assert.equal(facets.data?.facets[0]?.name, "width");
    const image = await client.GET("/images/{id}", { params: { path: { id: listed.id } }, parseAs: "arrayBuffer" });
    const bytes = new Uint8Array(image.data as ArrayBuffer);
    assert.deepEqual([...bytes.slice(0, 2)], [0xff, 0xd8]);
});

test("a service with a token refuses others", async () => {
    const { error, response } = await lookalike(url, "another-token-of-somebody").GET("/status");
    assert.equal(response.status, 401);
    assert.equal(error?.error.code, "token-needed");
});
