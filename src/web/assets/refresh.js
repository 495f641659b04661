// Refreshes a page, and adds buttons that copy SQL. Every page works without it.
const seconds = Number(document.documentElement.dataset.refresh);

/** Whether somebody is using the page, so that it must not change. */
function isInUse() {
  const main = document.querySelector('main');
  const selected = document.getSelection();
  return (
    document.hidden ||
    (main !== document.activeElement && main.contains(document.activeElement)) ||
    (selected !== null && !selected.isCollapsed) ||
    main.querySelector('details[open]') !== null
  );
}

async function refresh() {
  const response = await fetch(location.href, { headers: { accept: 'text/html' } });
  if (!response.ok || isInUse()) return;
  const next = new DOMParser().parseFromString(await response.text(), 'text/html');
  const main = next.querySelector('main');
  if (main === null) return;
  // The notice of an action stays until the next page.
  const notice = document.querySelector('main > .notice');
  if (notice !== null) main.prepend(notice);
  document.querySelector('main').replaceWith(document.adoptNode(main));
  document.title = next.title;
  addCopyButtons();
}

function addCopyButtons() {
  if (navigator.clipboard === undefined) return;
  for (const block of document.querySelectorAll('pre[data-copy]')) {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'copy';
    button.textContent = 'Copy';
    button.addEventListener('click', async () => {
      await navigator.clipboard.writeText(block.textContent);
      button.textContent = 'Copied';
    });
    block.parentElement.before(button);
  }
}

if (seconds > 0) {
  // If the server does not respond, the next refresh tries again.
  setInterval(() => void (isInUse() || refresh().catch(() => undefined)), seconds * 1000);
}
addCopyButtons();
