// Groups, filters and the list at the side.
let order = view.get('order', 'path');
const wanted = { search: '', path: '', codes: new Set(), levels: new Set(['safe', 'unsafe', 'reported']), states: new Set(['open', 'accept', 'reject']) };
const entries = new Map();
let groups = [];

function sorted() {
  const keys = order === 'path' ? ['path', 'line', 'code'] : ['code', 'path', 'line'];
  const before = (a, b) => {
    for (const key of keys) if (a[key] !== b[key]) return a[key] < b[key] ? -1 : 1;
    return 0;
  };
  return [...ITEMS].sort(before);
}

/** Put the cards under their files, or their codemods; a card is made once and moves. */
function arrange() {
  groups = [];
  for (const item of sorted()) {
    const name = item[order];
    if (!groups.length || groups.at(-1).name !== name) groups.push({ name, items: [] });
    groups.at(-1).items.push(item);
  }
  const sections = [];
  const index = [];
  groups.forEach((group, i) => {
    const title = order === 'path' ? [el('code', {}, group.name)] : [`${group.name} ${DATA.codes[group.name].name}`];
    const about = order === 'code' ? DATA.codes[group.name].says : [];
    group.button = el('button', { type: 'button', class: 'all', on: { click: () => acceptAll(group.items) } });
    group.count = el('span', { class: 'n' });
    group.section = el('section', { 'aria-labelledby': `g-${i}` },
      el('div', { class: 'group' }, el('h2', { id: `g-${i}` }, ...title, ' ', group.count), group.button),
      about.length ? el('p', { class: 'about' }, ...prose(about)) : null,
      ...group.items.map((item) => cards.get(item.id)?.made || card(item)));
    group.list = el('ol', {}, ...group.items.map((item) => entries.get(item.id) || entry(item)));
    group.head = el('li', { class: 'heading' }, el('span', { title: group.name }, el('bdi', {}, group.name)), group.list);
    for (const item of group.items) entries.get(item.id).firstChild.firstChild.nextSibling.textContent = order === 'path' ? item.code : tail(item.path);
    sections.push(group.section);
    index.push(group.head);
  });
  $('groups').replaceChildren(...sections);
  $('index').replaceChildren(...index);
  $('groups').className = `by-${order}`;
  for (const button of document.querySelectorAll('[data-order]')) {
    button.setAttribute('aria-pressed', String(button.dataset.order === order));
  }
  for (const { made, filled } of cards.values()) if (!filled) near.observe(made);
  sift();
}

function tail(path) {
  return path.split('/').at(-1);
}

function entry(item) {
  const link = el('a', { href: `#f-${item.id}`, class: item.level, on: { click: (event) => { event.preventDefault(); go(item.id); } } },
    el('i', { 'aria-hidden': 'true' }), el('span', {}, item.code), el('span', { class: 'n' }, item.where));
  const made = el('li', {}, link);
  entries.set(item.id, made);
  return made;
}

// Filters

function haystack(item) {
  item.text ??= [
    item.code, DATA.codes[item.code].name, `${item.path}:${item.where}`, item.symbol, item.says.join(''), item.why.join(''),
    ...item.checks.map((check) => check[1].join('')),
    ...item.diff.flatMap((hunk) => hunk[2].flatMap(([, left, , right]) => [left, right || []].map((runs) => runs.filter((_, i) => i % 2).join('')))),
  ].join('\n').toLowerCase();
  return item.text;
}

function pathTest(asked) {
  if (!asked) return () => true;
  if (!asked.includes('*')) return (path) => path.toLowerCase().includes(asked.toLowerCase());
  const plain = asked.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
  const pattern = new RegExp(`^${plain.join('.*')}$`, 'i');
  return (path) => pattern.test(path);
}

function isShown(item, inPath, words) {
  return (!wanted.codes.size || wanted.codes.has(item.code)) && wanted.levels.has(item.level) && wanted.states.has(verdict(item.id))
    && inPath(item.path) && words.every((word) => haystack(item).includes(word));
}

/** Show what is wanted. A card that is being decided over stays until the filters change. */
function sift(but = []) {
  const inPath = pathTest(wanted.path.trim());
  const words = wanted.search.toLowerCase().split(/\s+/).filter(Boolean);
  for (const item of ITEMS) {
    const made = cards.get(item.id).made;
    const shown = isShown(item, inPath, words) || (but.includes(item.id) && !made.hidden);
    made.hidden = !shown;
    entries.get(item.id).hidden = !shown;
  }
  for (const group of groups) {
    const shown = group.items.filter((item) => !cards.get(item.id).made.hidden);
    group.section.hidden = !shown.length;
    group.head.hidden = !shown.length;
    group.count.textContent = String(shown.length);
    const open = openOf(shown);
    const unsafe = open.filter((item) => item.level === 'unsafe').length;
    group.button.hidden = open.length < 2;
    group.button.textContent = `Accept all ${open.length}${unsafe ? `, ${unsafe} unsafe` : ''}`;
  }
  const shown = ITEMS.filter((item) => !cards.get(item.id).made.hidden);
  const safe = openOf(shown).filter((item) => item.level === 'safe').length;
  $('shown').textContent = shown.length === ITEMS.length ? plural(ITEMS.length, 'finding') : `${shown.length} of ${plural(ITEMS.length, 'finding')}`;
  $('allsafe').hidden = !safe;
  $('allsafe').textContent = safe === 1 ? 'Accept the safe one' : shown.length === ITEMS.length ? `Accept all ${safe} safe` : `Accept the ${safe} safe ones shown`;
  $('none').hidden = shown.length > 0 || !ITEMS.length;
  const narrowed = wanted.search || wanted.path || wanted.codes.size || wanted.levels.size < 3 || wanted.states.size < 3;
  $('clear').hidden = !narrowed;
}

function openOf(items) {
  return items.filter((item) => item.acceptable && verdict(item.id) === 'open');
}

function acceptAll(items) {
  const open = openOf(items.filter((item) => !cards.get(item.id).made.hidden));
  if (!open.length) return toast('Nothing is open there');
  decide(open.map((item) => item.id), 'accept');
  return toast(`${plural(open.length, 'finding')} accepted; u takes it back`);
}

function showAll() {
  $('search').value = $('path').value = wanted.search = wanted.path = '';
  wanted.codes.clear();
  for (const box of document.querySelectorAll('.chips input')) {
    box.checked = true;
    (box.closest('#levels') ? wanted.levels : wanted.states).add(box.value);
  }
  for (const button of document.querySelectorAll('.kind')) button.setAttribute('aria-pressed', 'false');
  sift();
}

function count() {
  const now = tally();
  const words = [`${now.accept} accepted`, `${now.reject} rejected`, `${now.open} open`];
  if (now.reported) words.push(`${now.reported} reported`);
  $('counts').textContent = words.join(' · ');
  const all = ITEMS.filter((item) => item.acceptable).length || 1;
  $('progress').children[0].style.width = `${(100 * now.accept) / all}%`;
  $('progress').children[1].style.width = `${(100 * now.passed) / all}%`;
  for (const mark of document.querySelectorAll('[data-count]')) mark.textContent = String(now[mark.dataset.count]);
}

watchers.push((ids) => {
  for (const id of ids) {
    paint(id);
    entries.get(id).dataset.verdict = verdict(id);
  }
  count();
  sift(ids);
});

for (const field of ['search', 'path']) {
  $(field).addEventListener('input', (event) => { wanted[field] = event.target.value; sift(); });
}
for (const box of document.querySelectorAll('.chips input')) {
  box.addEventListener('change', () => {
    const kind = box.closest('#levels') ? wanted.levels : wanted.states;
    if (box.checked) kind.add(box.value);
    else kind.delete(box.value);
    sift();
  });
}
for (const button of document.querySelectorAll('.kind')) {
  button.addEventListener('click', () => {
    const [code_, on] = [button.dataset.code, button.getAttribute('aria-pressed') !== 'true'];
    button.setAttribute('aria-pressed', String(on));
    if (on) wanted.codes.add(code_);
    else wanted.codes.delete(code_);
    sift();
  });
}
for (const button of document.querySelectorAll('[data-order]')) {
  button.addEventListener('click', () => {
    order = button.dataset.order;
    view.set('order', order);
    arrange();
  });
}
$('clear').addEventListener('click', showAll);
$('clear2').addEventListener('click', showAll);
$('allsafe').addEventListener('click', () => acceptAll(ITEMS.filter((item) => item.level === 'safe')));
$('paths').append(...[...new Set(ITEMS.map((item) => item.path))].sort().map((path) => el('option', { value: path })));
