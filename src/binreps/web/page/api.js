// Requests to the server that served the page; what goes wrong is one sentence.

async function answered(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("the server does not answer; is `binreps web` still running?");
  }
  if (response.ok) return response;
  const content = await response.json().catch(() => ({}));
  const problem = new Error(content.error ?? `the server answered with status ${response.status}`);
  throw Object.assign(problem, { status: response.status });
}

export const get = (path) => answered(path);

export async function ask(path, content, signal) {
  const headers = { "content-type": "application/json" };
  const response = await answered(path, { method: "POST", headers, body: JSON.stringify(content), signal });
  return response.json();
}

// A long piece of work: lines of JSON, each of them how far it is, the last one the answer.
export async function follow(path, content, onProgress, signal) {
  const headers = { "content-type": "application/json", accept: "application/x-ndjson" };
  const response = await answered(path, { method: "POST", headers, body: JSON.stringify(content), signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  let answer = null;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    text += value;
    const lines = text.split("\n");
    text = lines.pop();
    for (const line of lines.filter(Boolean).map((one) => JSON.parse(one))) {
      if (line.error) throw new Error(line.error);
      if (line.answer) answer = line.answer;
      else onProgress(line);
    }
  }
  if (!answer) throw new Error("the server ended without an answer; try again");
  return answer;
}

function post(path, fields, signal) {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) {
    if (value instanceof File) form.append(name, value, value.name);
    else if (value) form.append(name, value);
  }
  return answered(path, { method: "POST", body: form, signal });
}

// A file that the server keeps: sent once, then known by its id; sent again only if the server has it no more.
export function upload(file, replaced) {
  let id = null;
  const describe = async (sheet, signal) => {
    const kept = id !== null && sheet !== undefined;
    const sent = kept ? { upload: id, sheet } : { file, upload: id ?? replaced, sheet };
    const described = await (await post("/api/columns", sent, signal)).json();
    id = described.id;
    return described;
  };
  const about = async (path, request, signal) => {
    const asked = () => post(path, { request: JSON.stringify(request), upload: id }, signal);
    try {
      return await asked();
    } catch (error) {
      if (error.status !== 410) throw error;
      await describe();
      return asked();
    }
  };
  return { file, id: () => id, describe, about };
}

// Calls of one kind: a new one replaces those that wait or run, and waits a moment for more to come.
export function latest(wait, work) {
  let timer = 0;
  let running = null;
  return () => {
    clearTimeout(timer);
    running?.abort();
    timer = setTimeout(async () => {
      running = new AbortController();
      const mine = running;
      try {
        await work(mine.signal);
      } catch (error) {
        if (error.name !== "AbortError") throw error;
      }
    }, wait);
  };
}
