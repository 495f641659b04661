// Refreshes a page, and adds buttons that copy the commands in tables. Every page works without it.
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
  document.querySelector('main').replaceWith(document.adoptNode(main));
  document.title = next.title;
  addCopyButtons();
}

function addCopyButtons() {
  if (navigator.clipboard === undefined) return;
  for (const command of document.querySelectorAll('td .command')) {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'button copy';
    button.textContent = 'Copy';
    button.ariaLabel = `Copy ${command.textContent}`;
    button.addEventListener('click', async () => {
      await navigator.clipboard.writeText(command.textContent);
      button.textContent = 'Copied';
      button.ariaLabel = `Copied ${command.textContent}`;
    });
    command.after(button);
  }
}

if (seconds > 0) {
  // If the server does not respond, the next refresh tries again.
  setInterval(() => void (isInUse() || refresh().catch(() => undefined)), seconds * 1000);
}
addCopyButtons();
