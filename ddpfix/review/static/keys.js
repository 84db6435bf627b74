// The finding that one is at, and the keys.
let current = null;

function inOrder() {
  return groups.flatMap((group) => group.items).filter((item) => !cards.get(item.id).made.hidden).map((item) => item.id);
}

/** Make a finding the one that the keys are for. */
function mark(id) {
  if (current) {
    cards.get(current).made.classList.remove('current');
    entries.get(current).classList.remove('current');
  }
  current = id;
  cards.get(id).made.classList.add('current');
  entries.get(id).classList.add('current');
  const list = $('index');
  const place = entries.get(id);
  const [top, bottom] = [list.getBoundingClientRect().top, list.getBoundingClientRect().bottom];
  const here = place.getBoundingClientRect();
  if (here.top < top || here.bottom > bottom) list.scrollTop += here.top - top - list.clientHeight / 3;
}

/** Go to a finding: it is filled, in sight and has the focus. */
function go(id) {
  fill(id);
  mark(id);
  const made = cards.get(id).made;
  made.focus({ preventScroll: true });
  made.scrollIntoView({ block: 'start' });
  requestAnimationFrame(() => made.scrollIntoView({ block: 'start' })); // what came into sight has its true height now
}

function step(by) {
  const ids = inOrder();
  if (!ids.length) return;
  const at = ids.indexOf(current);
  go(ids[at < 0 ? (by > 0 ? 0 : ids.length - 1) : Math.min(Math.max(at + by, 0), ids.length - 1)]);
}

function nextOpen() {
  const ids = inOrder();
  const at = ids.indexOf(current);
  const found = [...ids.slice(at + 1), ...ids.slice(0, at + 1)].find((id) => BY_ID.get(id).acceptable && verdict(id) === 'open');
  if (found) go(found);
  else toast('Nothing is open');
}

function here() {
  if (!current || cards.get(current).made.hidden) step(1);
  return current && BY_ID.get(current);
}

function judge(what) {
  const item = here();
  if (!item) return;
  if (what === 'accept' && !item.acceptable) {
    toast('There is no fix to accept: this one is reported only');
    return;
  }
  const ids = inOrder();
  decide([item.id], what);
  const next = ids[ids.indexOf(item.id) + 1];
  if (next) go(next);
  else go(item.id);
}

const KEYS = {
  j: () => step(1),
  k: () => step(-1),
  n: nextOpen,
  a: () => judge('accept'),
  r: () => judge('reject'),
  R: () => {
    const item = here();
    if (!item) return;
    if (verdict(item.id) !== 'reject') decide([item.id], 'reject');
    go(item.id);
    cards.get(item.id).reason.focus();
  },
  A: () => {
    const item = here();
    if (item) acceptAll(ITEMS.filter((other) => other.code === item.code && other.level === 'safe'));
  },
  u: () => {
    const id = undo();
    if (id) go(id);
    else toast('Nothing to take back');
  },
  e: () => {
    const details = here() && cards.get(current).made.querySelector('.evidence');
    if (details) details.open = !details.open;
  },
  s: () => $('layout').click(),
  t: () => $('theme').click(),
  '/': () => {
    $('side').open = true;
    $('search').focus();
    $('search').select();
  },
  '?': () => $('keys').showModal(),
};

addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
  const typing = event.target.matches('input:not([type=checkbox]), textarea, select');
  if (typing) {
    if (event.key !== 'Escape' && !(event.key === 'Enter' && event.target.matches('.because'))) return;
    event.target.blur();
    if (event.target.matches('.because') && event.key === 'Enter') step(1);
    else if (current) cards.get(current).made.focus({ preventScroll: true });
    event.preventDefault();
    return;
  }
  const act = KEYS[event.key];
  const over = document.body.classList.contains('done') && 'arRAu'.includes(event.key); // it is applied
  if (act && !over) {
    event.preventDefault();
    act();
  }
});

$('groups').addEventListener('focusin', (event) => {
  const made = event.target.closest('article');
  if (made && made.id.slice(2) !== current) mark(made.id.slice(2));
});
$('groups').addEventListener('click', (event) => {
  const made = event.target.closest('article');
  if (made && made.id.slice(2) !== current) mark(made.id.slice(2));
});
