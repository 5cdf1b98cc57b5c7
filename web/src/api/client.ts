import { takeAsked } from "../first/asked";
import { lost, refusal } from "./error";
import type { paths } from "./schema";

type Method = "get" | "post" | "put" | "patch" | "delete";
type PathOf<M extends Method> = {
  [P in keyof paths]: paths[P][M] extends { responses: unknown } ? P : never;
}[keyof paths];
type Operation<P extends keyof paths, M extends Method> = Extract<paths[P][M], { responses: unknown }>;

type Json<R> = R extends { content: { "application/json": infer A } } ? A : never;
type Responses<O> = O extends { responses: infer R } ? R : never;
type Answer<O> = Responses<O> extends infer R
  ? R extends { 200: infer A }
    ? Json<A>
    : R extends { 201: infer A }
      ? Json<A>
      : R extends { 202: infer A }
        ? Json<A>
        : undefined
  : never;

type PathValues<O> = O extends { parameters: { path: infer V } } ? V : undefined;
type QueryValues<O> = O extends { parameters: { query?: infer Q } } ? Q : undefined;
type BodyOf<O> = O extends { requestBody?: { content: { "application/json": infer B } } } ? B : undefined;

type Given<O> = (PathValues<O> extends undefined ? { path?: undefined } : { path: PathValues<O> }) & {
  query?: QueryValues<O>;
  body?: BodyOf<O>;
  ifMatch?: string | undefined;
  signal?: AbortSignal | undefined;
};

export interface Page<Row> {
  rows: Row[];
  next: string | undefined;
}

// Told to the window when the server no longer knows who we are.
export const signedOut = "berth:signed-out";

function urlOf(path: string, values: object | undefined, query: object | undefined): string {
  let url = path;
  for (const [name, value] of Object.entries(values ?? {})) {
    url = url.replace(`{${name}}`, encodeURIComponent(String(value)));
  }
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined && value !== null && value !== "") search.set(name, String(value));
  }
  const text = search.toString();
  return text ? `${url}?${text}` : url;
}

async function send(method: Method, path: string, given: Given<unknown>): Promise<Response> {
  const headers: Record<string, string> = { accept: "application/json" };
  const body = (given as { body?: unknown }).body;
  if (body !== undefined) headers["content-type"] = "application/json";
  if (given.ifMatch) headers["if-match"] = given.ifMatch;
  let response: Response;
  try {
    const url = urlOf(path, given.path as object | undefined, given.query as object | undefined);
    const asked = method === "get" ? takeAsked(url, given.signal) : undefined;
    response = await (asked ?? fetch(url, {
      method: method.toUpperCase(),
      headers,
      body: body === undefined ? null : JSON.stringify(body),
      signal: given.signal ?? null,
    }));
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw lost();
  }
  // Whoever shows the page looks again who is looking.
  if (response.status === 401) window.dispatchEvent(new Event(signedOut));
  if (!response.ok) throw await refusal(response);
  return response;
}

async function call<P extends PathOf<M>, M extends Method>(
  method: M,
  path: P,
  given: Given<Operation<P, M>>,
): Promise<Answer<Operation<P, M>>> {
  const response = await send(method, path, given as Given<unknown>);
  if (response.status === 204) return undefined as Answer<Operation<P, M>>;
  return (await response.json()) as Answer<Operation<P, M>>;
}

// Typed by the description of the API: paths, parameters, bodies and answers.
export const api = {
  get: <P extends PathOf<"get">>(path: P, given: Given<Operation<P, "get">>) => call("get", path, given),
  post: <P extends PathOf<"post">>(path: P, given: Given<Operation<P, "post">>) => call("post", path, given),
  put: <P extends PathOf<"put">>(path: P, given: Given<Operation<P, "put">>) => call("put", path, given),
  patch: <P extends PathOf<"patch">>(path: P, given: Given<Operation<P, "patch">>) => call("patch", path, given),
  delete: <P extends PathOf<"delete">>(path: P, given: Given<Operation<P, "delete">>) => call("delete", path, given),

  // One page of a list, and the cursor of the next, which the Link header names.
  async page<P extends PathOf<"get">>(
    path: P,
    given: Given<Operation<P, "get">>,
  ): Promise<Answer<Operation<P, "get">> extends (infer Row)[] ? Page<Row> : never> {
    const response = await send("get", path, given as Given<unknown>);
    const link = response.headers.get("link")?.match(/<([^>]*)>/)?.[1];
    const next = link ? (new URL(link, location.origin).searchParams.get("after") ?? undefined) : undefined;
    return { rows: await response.json(), next } as never;
  },
};
