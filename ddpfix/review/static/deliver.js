// Colours, layout, and what becomes of the decisions: a file, or a branch.
const themes = ['', 'light', 'dark'];

function theme(name) {
  if (name) document.documentElement.dataset.theme = name;
  else delete document.documentElement.dataset.theme;
  $('theme').title = `Light or dark (t): ${name || 'as the system has it'}`;
}

theme(view.get('theme', ''));
$('theme').addEventListener('click', () => {
  const dark = document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === 'dark'
    : matchMedia('(prefers-color-scheme: dark)').matches;
  const name = dark ? 'light' : 'dark';
  view.set('theme', themes.includes(name) ? name : '');
  theme(name);
});

function lay() {
  $('layout').setAttribute('aria-pressed', String(sideBySide));
}
$('layout').addEventListener('click', () => {
  sideBySide = !sideBySide;
  view.set('side by side', sideBySide);
  lay();
  redraw();
});
$('help').addEventListener('click', () => $('keys').showModal());
$('keys-close').addEventListener('click', () => $('keys').close());

addEventListener('beforeprint', () => {
  for (const item of ITEMS) fill(item.id);
  for (const details of document.querySelectorAll('.evidence')) details.open = true;
});

// A file

function download() {
  const data = new Blob([`${JSON.stringify(asFile(), null, 1)}\n`], { type: 'application/json' });
  const link = el('a', { href: URL.createObjectURL(data), download: DATA.file });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  toast(`In the repository: ddpfix apply --decisions ${DATA.file}`, 9000);
}

// A branch

function askToApply() {
  const now = tally();
  const rows = [];
  if (!now.accept) rows.push(el('p', {}, 'Nothing is accepted yet.'));
  else {
    const where = DATA.served.branch
      ? [' will be committed on the branch ', el('code', {}, DATA.served.branch), ', a commit for each codemod, and it is checked out. Your own branch stays as it is.']
      : [' will be written into the files; ', el('code', {}, 'ddpfix undo'), ' takes them back.'];
    rows.push(el('p', {}, el('b', {}, plural(now.accept, 'fix', 'fixes')), ...where));
    if (now.unsafe) rows.push(el('p', { class: 'why' }, `${plural(now.unsafe, 'of them is', 'of them are')} unsafe: accepting was the consent.`));
  }
  if (now.open) rows.push(el('p', {}, `${plural(now.open, 'finding')} still open: not applied.`));
  $('apply-body').replaceChildren(...rows);
  $('apply-yes').hidden = !now.accept;
  $('apply').showModal();
}

async function apply() {
  $('apply-yes').disabled = true;
  $('apply-yes').textContent = 'Applying…';
  let done;
  try {
    await saved();
    done = await (await ask('apply', asFile())).json();
  } catch {
    done = { message: 'ddpfix does not answer any more', todo: 'Start it again with `ddpfix review --serve`: the decisions are saved.' };
  }
  $('apply-yes').disabled = false;
  $('apply-yes').textContent = 'Apply';
  $('apply').close();
  tell(done);
}

/** What came of it, above the findings. */
function tell(done) {
  const box = [];
  if (done.done) {
    document.body.classList.add('done');
    box.push(done.branch ? el('h2', {}, 'Committed on ', el('code', {}, done.branch)) : el('h2', {}, 'Written into the files'),
      el('pre', { class: 'screen' }, done.screen),
      done.summary ? el('details', { open: true }, el('summary', {}, 'DDPFIX_SUMMARY.md'), el('pre', {}, done.summary)) : null,
      el('p', {}, 'ddpfix has ended; this page can be closed.'));
  } else if (done.stale) {
    box.push(el('h2', {}, 'The repository has changed'), el('p', {}, done.message),
      el('button', { type: 'button', class: 'primary', on: { click: () => location.reload() } }, 'Show the findings of now'));
  } else {
    box.push(el('h2', {}, 'Nothing was applied'), el('p', {}, done.message), done.todo ? el('p', {}, done.todo) : null);
  }
  $('result').className = done.done ? 'good' : 'bad';
  $('result').replaceChildren(...box.filter(Boolean));
  $('result').hidden = false;
  $('result').focus();
  scrollTo({ top: 0 });
}

$('deliver').addEventListener('click', () => (DATA.served ? askToApply() : download()));
$('apply-no').addEventListener('click', () => $('apply').close());
$('apply-yes').addEventListener('click', apply);

// Begin

lay();
arrange();
for (const [id] of decided) {
  paint(id);
  entries.get(id).dataset.verdict = verdict(id);
}
count();
if (matchMedia('(max-width: 900px)').matches) $('side').open = false;
for (const item of groups.flatMap((group) => group.items).slice(0, 8)) fill(item.id);
fillAll();
