// What is asked of the servers, through the door that serves this page. All addresses are relative, so they have its secret.

export const server = 'server';

// Refused is an answer that is not one: status, and the server's sentence. Status 0: nobody answered.
export class Refused extends Error {
  constructor(status, text) {
    super(sentence(status, text));
    this.status = status;
  }
}

function sentence(status, text) {
  let message = text.trim();
  try { message = JSON.parse(text).message || message; } catch { /* it is a sentence already */ }
  switch (status) {
    case 0: return "'setpoint ui' does not answer. If it has ended, start it again and open the new address";
    case 401: return 'the servers do not accept the credentials any more: renew the kubeconfig, and this page goes on';
    case 404: return message || 'there is no such thing';
    default: return message || `the answer was ${status}`;
  }
}

// ask fetches a path below the page and throws Refused.
export async function ask(path, options = {}) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (err) {
    if (err.name === 'AbortError') throw err;
    throw new Refused(0, '');
  }
  if (!response.ok) throw new Refused(response.status, await response.text());
  return response;
}

export const getJSON = async (path, options) => (await ask(path, options)).json();

const question = (name, body) => getJSON(`${server}/setpoint.v1.ClusterService/${name}`, {
  method: 'POST', body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' },
});

// order has the servers do something, or this machine think of something.
const order = (path, body, options = {}) => getJSON(path, {
  ...options, method: 'POST', body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' },
});

export const orderLesson = (lesson) => order('lesson', lesson);
export const orderLoop = (what, loop) => order('loop', { order: what, loop });
export const askWhatIf = (whatIf, options) => order('what-if', whatIf, options);
export const askLessons = () => getJSON(`${server}/setpoint.v1.ClusterService/Lesson`);

export const askServers = () => getJSON('servers');
export const askLoops = () => question('Loops', {});
export const askWhy = (object) => question('Why', { kind: object.kind, namespace: object.namespace, name: object.name });
export const askHistory = (object) => getJSON(`${server}/setpoint.v1.ClusterService/History?` +
  new URLSearchParams({ kind: object.kind, namespace: object.namespace, name: object.name }));
export const askMoment = (time, options) => getJSON(`${server}/setpoint.v1.ClusterService/Moment?` +
  new URLSearchParams({ time: time.toISOString() }), options);

// The pages of a list have at most pageMax objects.
const pageMax = 1000;

// listAll reads a list page by page and returns its resourceVersion. each gets the items of a page. A page that expires begins the list
// again, once; first is called before it begins.
export async function listAll(path, query, options, first, each) {
  for (let again = true; ; again = false) {
    try {
      first();
      return await pages(path, query, options, each);
    } catch (err) {
      if (!again || err.status !== 410 || query.resourceVersionMatch) throw err;
    }
  }
}

async function pages(path, query, options, each) {
  let token = '';
  for (;;) {
    const asked = new URLSearchParams({ ...(token ? {} : query), limit: pageMax, ...(token && { continue: token }) });
    const page = await getJSON(`${server}${path}?${asked}`, options);
    each(page.items ?? []);
    token = page.metadata.continue;
    if (!token) return page.metadata.resourceVersion;
  }
}
