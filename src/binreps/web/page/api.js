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
  throw new Error(content.error ?? `the server answered with status ${response.status}`);
}

export const get = (path) => answered(path);

export async function ask(path, content, signal) {
  const headers = { "content-type": "application/json" };
  const response = await answered(path, { method: "POST", headers, body: JSON.stringify(content), signal });
  return response.json();
}

export function send(path, file, request) {
  const form = new FormData();
  if (request) form.append("request", JSON.stringify(request));
  form.append("file", file, file.name);
  return answered(path, { method: "POST", body: form });
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
