// What was decided: id -> {verdict, reason, edited}. Kept by the browser, or by the server where there is one.
const decided = new Map();
const history_ = [];
const watchers = [];

{
  let kept = {};
  if (!DATA.served) {
    try { kept = JSON.parse(localStorage.getItem(DATA.key)) || {}; } catch { /* nothing is kept */ }
  }
  for (const [id, decision] of Object.entries({ ...DATA.decisions, ...kept })) {
    const item = BY_ID.get(id);
    if (item && decision && (decision.verdict === 'reject' || (decision.verdict === 'accept' && item.acceptable))) {
      decided.set(id, decision);
    }
  }
}

function verdict(id) {
  return decided.get(id)?.verdict || 'open';
}

/** Decide over findings, and over those that are fixed together with them; null takes a decision back. */
function decide(ids, what, reason = '') {
  const all = [...new Set(ids.flatMap((id) => [id, ...BY_ID.get(id).mates]))].filter((id) => BY_ID.has(id));
  const before = [];
  for (const id of all) {
    if (what === 'accept' && !BY_ID.get(id).acceptable) continue;
    before.push([id, decided.get(id)]);
    const old = decided.get(id);
    if (!what) decided.delete(id);
    else if (what === 'accept') decided.set(id, old?.verdict === 'accept' ? old : { verdict: 'accept' });
    else decided.set(id, reason ? { verdict: 'reject', reason } : { verdict: 'reject' });
  }
  if (before.length) {
    history_.push(before);
    changed(before.map(([id]) => id));
  }
  return before.length;
}

/** Why a finding is rejected; no step of its own for undo. */
function because(id, reason) {
  const words = reason.split(/\s+/).filter(Boolean).join(' ');
  decided.set(id, words ? { verdict: 'reject', reason: words } : { verdict: 'reject' });
  changed([id]);
}

/** Take the last decision back; the first finding of it. */
function undo() {
  const before = history_.pop();
  if (!before) return null;
  for (const [id, old] of before) {
    if (old) decided.set(id, old);
    else decided.delete(id);
  }
  changed(before.map(([id]) => id));
  return before[0][0];
}

function changed(ids) {
  keep();
  for (const watch of watchers) watch(ids);
}

function tally() {
  const out = { accept: 0, reject: 0, open: 0, reported: 0, unsafe: 0, passed: 0 };
  for (const item of ITEMS) {
    const now = verdict(item.id);
    if (now !== 'open') out[now] += 1;
    else if (item.acceptable) out.open += 1;
    else out.reported += 1;
    if (now === 'accept' && item.level === 'unsafe') out.unsafe += 1;
    if (now === 'reject' && item.acceptable) out.passed += 1;
  }
  return out;
}

/** The decisions as their file has them: sorted, a verdict alone as a word; those over findings of other paths stay in it. */
function asFile() {
  const sorted = [...Object.entries(DATA.beside), ...decided.entries()].sort(([a], [b]) => (a < b ? -1 : 1));
  const shown = sorted.map(([id, d]) => [id, d.reason || d.edited ? d : d.verdict]);
  return { version: 1, ...(DATA.base ? { base: DATA.base } : {}), decisions: Object.fromEntries(shown) };
}

function keep() {
  if (DATA.served) return send();
  try {
    localStorage.setItem(DATA.key, JSON.stringify(Object.fromEntries(decided)));
  } catch {
    toast('This browser keeps nothing: download the decisions before you close the page', 8000);
  }
  return null;
}

function ask(where, body) {
  return fetch(where, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-Ddpfix-Token': DATA.served.token },
    body: JSON.stringify(body),
  });
}

let sending = null;
let waiting = false;
/** Save on the server: one request at a time, the last state last. */
function send() {
  if (sending) {
    waiting = true;
    return sending;
  }
  sending = ask('decisions', asFile())
    .then(async (answer) => { if (!answer.ok) toast(`Not saved: ${(await answer.json()).message}`, 8000); })
    .catch(() => toast('Not saved: ddpfix does not answer any more', 8000))
    .finally(() => {
      sending = null;
      if (waiting) {
        waiting = false;
        send();
      }
    });
  return sending;
}

/** When everything is saved. */
async function saved() {
  while (sending) await sending;
}
