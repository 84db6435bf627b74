// What the page is about, and how elements are made: by text nodes alone, so that no text is ever read as HTML.
const $ = (id) => document.getElementById(id);
const DATA = JSON.parse($('data').textContent);
const ITEMS = DATA.items;
const BY_ID = new Map(ITEMS.map((item) => [item.id, item]));
const LEVELS = {
  safe: 'nothing changes on one device, and every condition was shown in the code',
  unsafe: 'rests on an assumption: accepting it is the consent that it needs',
  reported: 'there is no fix to accept; the reason says why',
};
for (const item of ITEMS) item.acceptable = item.level !== 'reported';

/** An element with attributes and children; a child that is a string becomes text. */
function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === 'on') for (const [event, call] of Object.entries(value)) made.addEventListener(event, call);
    else if (value === true) made.setAttribute(name, '');
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ''));
  return made;
}

/** Prose and code by turns, as nodes. */
function prose(flat) {
  return flat.map((text, i) => (i % 2 ? el('code', {}, text) : text)).filter((part) => part !== '');
}

function plural(count, noun, several) {
  return `${count} ${count === 1 ? noun : several || noun + 's'}`;
}

let toasting = 0;
/** A word at the foot of the page, for a moment. */
function toast(text, stays = 2600) {
  $('toast').textContent = text;
  $('toast').hidden = false;
  clearTimeout(toasting);
  toasting = setTimeout(() => { $('toast').hidden = true; }, stays);
}

const view = (() => {
  const name = 'ddpfix-review-view';
  let kept = {};
  try { kept = JSON.parse(localStorage.getItem(name)) || {}; } catch { /* a browser that keeps nothing */ }
  return {
    get: (key, otherwise) => (key in kept ? kept[key] : otherwise),
    set: (key, value) => {
      kept[key] = value;
      try { localStorage.setItem(name, JSON.stringify(kept)); } catch { /* the same */ }
    },
  };
})();
