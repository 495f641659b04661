// Shows screen readers what Bull Board does not. Buttons that are only an icon get a name, from the icon's class.
const NAMES = { 'circle-user': 'Links', 'ellipsis-vertical': 'More', maximize: 'Full screen' };

function complete() {
  for (const button of document.querySelectorAll('button:not([aria-label]), button[data-named]')) {
    const icon = button.querySelector('svg');
    if (icon === null || button.textContent.trim() !== '') continue;
    const shown = /\blucide-([\w-]+)/.exec(icon.getAttribute('class'))?.[1] ?? 'button';
    const name = NAMES[shown] ?? shown.replaceAll('-', ' ');
    button.dataset.named = '';
    if (button.getAttribute('aria-label') !== name) button.setAttribute('aria-label', name);
  }
  // Names of jobs come below the page's heading.
  for (const heading of document.querySelectorAll('h5:not([aria-level])')) heading.ariaLevel = '2';
  // The title beside the logo says the same.
  for (const logo of document.querySelectorAll('header img[alt]:not([alt=""])')) logo.alt = '';
}

new MutationObserver(complete).observe(document.body, { childList: true, subtree: true });
complete();
