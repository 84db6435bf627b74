// A finding as a card. Heads are made at once, what is below when the browser has time or the card comes near.
const cards = new Map();
let sideBySide = view.get('side by side', false) && matchMedia('(min-width: 900px)').matches;

function card(item) {
  const codemod = DATA.codes[item.code];
  const made = el('article', { id: `f-${item.id}`, tabindex: -1, class: `card ${item.level}`, 'aria-labelledby': `h-${item.id}` });
  const buttons = el('div', { class: 'verdicts', role: 'group', 'aria-label': `Decide over ${item.spot}` });
  if (item.acceptable) buttons.append(verdictButton(item, 'accept', 'Accept'));
  buttons.append(verdictButton(item, 'reject', item.acceptable ? 'Reject' : 'Dismiss'));
  const reason = el('input', {
    class: 'because', placeholder: 'Why? It goes into the summary', 'aria-label': 'Why it is rejected', hidden: true, autocomplete: 'off',
    on: { change: (event) => because(item.id, event.target.value) },
  });
  made.append(
    el('div', { class: 'head' },
      el('h3', { id: `h-${item.id}` },
        el('span', { class: 'level', title: LEVELS[item.level] }, item.level),
        el('span', { class: 'code' }, item.code), ' ',
        el('span', { class: 'rule', title: codemod.says.join('') }, codemod.name)),
      buttons),
    el('p', { class: 'place' },
      el('code', { class: 'full' }, `${item.path}:${item.where}`),
      el('span', { class: 'short' }, item.spot),
      item.symbol ? el('span', {}, ' in ', el('code', {}, item.symbol)) : null),
    reason);
  const rows = item.diff.reduce((sum, hunk) => sum + hunk[2].length + 1, 0);
  made.style.setProperty('--rows', String(rows));
  cards.set(item.id, { made, item, reason, filled: false });
  return made;
}

function verdictButton(item, what, title) {
  const key = what === 'accept' ? 'a' : 'r';
  return el('button', {
    type: 'button', class: what, 'data-do': what, 'aria-pressed': 'false', title: `${title} (${key})`,
    on: { click: () => { decide([item.id], verdict(item.id) === what ? null : what); mark(item.id); } },
  }, title);
}

/** Make what is below the head. */
function fill(id) {
  const { made, item, filled } = cards.get(id);
  if (filled) return;
  cards.get(id).filled = true;
  made.append(el('p', { class: 'says' }, ...prose([upper(item.says[0]), ...item.says.slice(1)])));
  if (item.why.join('')) {
    const begins = item.acceptable ? 'It assumes: ' : 'No fix: ';
    const said = item.why[0].replace(/^assumes (that )?/, '');
    made.append(el('p', { class: 'why' }, el('b', {}, begins), ...prose([said, ...item.why.slice(1)])));
  }
  made.append(el('p', { class: 'edited mates', hidden: true }, 'Accepted as it was edited by hand: other lines than these take its place.'));
  if (item.mates.length) {
    made.append(el('p', { class: 'mates' }, `Fixed together with ${plural(item.mates.length, 'other finding')}: one decision for all.`));
  }
  const flow = $(`flow-${item.id}`);
  const diff = el('div', { class: 'diffs' });
  cards.get(id).diff = diff;
  made.append(flow ? el('div', { class: 'beside' }, el('figure', { class: 'flowbox' }, flow.content.cloneNode(true)), diff) : diff);
  drawDiff(id);
  if (item.checks.length) made.append(evidence(item));
  paint(id);
}

function upper(words) {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function drawDiff(id) {
  const { item, diff } = cards.get(id);
  const several = new Set(item.diff.map((hunk) => hunk[0])).size > 1;
  const boxes = [];
  let last = null;
  for (const [path, header, rows, marked] of item.diff) {
    if (path !== last) boxes.push(el('div', { class: 'hunk' }, several || path !== item.path ? el('div', { class: 'file' }, path) : null));
    last = path;
    const split = sideBySide && !marked;
    const body = el('tbody', {}, ...(split ? splitRows(rows) : marked ? shownRows(rows, marked) : unifiedRows(rows)));
    const title = marked ? `Lines about ${path}:${item.where}` : `Change of ${path} ${header}`;
    boxes.at(-1).append(el('div', { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': title },
      el('table', { class: split ? 'diff split' : 'diff' },
        el('colgroup', {}, ...(split ? ['n', 't', 'n', 't'] : marked ? ['n', 't'] : ['n', 'n', 's', 't']).map((name) => el('col', { class: name }))), body)));
  }
  diff.replaceChildren(...boxes);
}

function code(runs) {
  const out = [];
  for (let i = 0; i < runs.length; i += 2) {
    const [name, text] = [runs[i], runs[i + 1]];
    const marked = name.endsWith('!');
    const kind = marked ? name.slice(0, -1) : name;
    const inner = kind ? el('span', { class: `p-${kind}` }, text) : text;
    out.push(marked ? el('mark', {}, inner) : inner);
  }
  return out;
}

const number = (n) => el('td', { class: 'n' }, n ? String(n) : '');
const text = (runs, kind) => el('td', { class: `t ${kind}` }, ...code(runs));

function splitRows(rows) {
  return rows.map(([old, left, fresh, right]) => (right === undefined
    ? el('tr', {}, number(old), text(left, ''), number(fresh), text(left, ''))
    : el('tr', {}, number(old), text(left, old ? 'del' : 'nil'), number(fresh), text(right, fresh ? 'add' : 'nil'))));
}

/** Lines without a change, those of the finding marked. */
function shownRows(rows, [first, last]) {
  return rows.map(([line, runs]) => el('tr', {}, number(line), text(runs, line >= first && line <= last ? 'here' : '')));
}

/** What went above what came, block by block. */
function unifiedRows(rows) {
  const out = [];
  let came = [];
  const line = (old, fresh, sign, runs, kind) => el('tr', {},
    number(old), number(fresh), el('td', { class: `s ${kind}` }, sign), text(runs, kind));
  for (const [old, left, fresh, right] of rows) {
    if (right === undefined) {
      out.push(...came, line(old, fresh, '', left, ''));
      came = [];
    } else {
      if (old) out.push(line(old, 0, '−', left, 'del'));
      if (fresh) came.push(line(0, fresh, '+', right, 'add'));
    }
  }
  return [...out, ...came];
}

// Evidence

function evidence(item) {
  const flags = DATA.codes[item.code].flags;
  const rows = flags ? asked(item) : item.checks.map(([, said, place, by]) => ['', said, place, by]);
  const heads = flags ? ['Check', 'Result', 'Where', 'By'] : ['What was found', 'Where', 'By'];
  const cells = (row) => (flags ? row : row.slice(1)).map((cell, i, all) => el('td', { 'data-head': heads[i] },
    ...(Array.isArray(cell) ? prose(cell) : [i === all.length - 2 && cell ? el('code', {}, cell) : cell])));
  return el('details', { class: 'evidence', open: flags },
    el('summary', {}, `Evidence: ${plural(item.checks.length, 'check')}`),
    el('table', {},
      el('thead', {}, el('tr', {}, ...heads.map((head) => el('th', { scope: 'col' }, head)))),
      el('tbody', {}, ...rows.map((row) => el('tr', {}, ...cells(row))))));
}

/** The questions that are asked of every flag, with what was found; one that has no answer says so. */
function asked(item) {
  const answers = new Map(DATA.questions.map((question) => [question, []]));
  for (const [question, said, place, by] of item.checks) {
    const key = question || 'What else was read?';
    answers.set(key, [...(answers.get(key) || []), [said, place, by]]);
  }
  const settled = (answers.get('Is `static_graph` set?') || []).some(([said]) => said.join('').includes('static_graph=True'));
  const none = settled ? 'Not asked: static_graph=True makes torch ignore the flag.' : 'Nothing was recorded.';
  return [...answers].flatMap(([question, found]) => (found.length
    ? found.map(([said, place, by], i) => [i ? '' : question.replaceAll('`', ''), said, place, by])
    : [[question.replaceAll('`', ''), none, '', '']]));
}

// The state of a card

function paint(id) {
  const { made, reason } = cards.get(id);
  const now = verdict(id);
  made.dataset.verdict = now;
  for (const button of made.querySelectorAll('[data-do]')) button.setAttribute('aria-pressed', String(button.dataset.do === now));
  const edited = made.querySelector('.edited');
  if (edited) edited.hidden = !decided.get(id)?.edited;
  reason.hidden = now !== 'reject';
  if (document.activeElement !== reason) reason.value = decided.get(id)?.reason || '';
}

// When cards are filled: those near the window at once, the others as the browser finds time, all of them for a printer

const near = new IntersectionObserver((seen) => {
  for (const one of seen) {
    if (one.isIntersecting) {
      near.unobserve(one.target);
      fill(one.target.id.slice(2));
    }
  }
}, { rootMargin: '1200px' });

const idle = window.requestIdleCallback || ((call) => setTimeout(() => call({ timeRemaining: () => 8 }), 30));

function fillAll() {
  const left = ITEMS.map((item) => item.id);
  const some = (time) => {
    do {
      const id = left.shift();
      fill(id);
      haystack(BY_ID.get(id));
    } while (left.length && time.timeRemaining() > 4);
    if (left.length) idle(some);
  };
  if (left.length) idle(some);
}

function redraw() {
  for (const [id, one] of cards) if (one.filled) drawDiff(id);
}
