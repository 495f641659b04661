/** A button for an action; nothing if there are no buttons (`token` is null). */
export function ActionButton({
  token,
  action,
  label,
  kind = 'plain',
  fields = {},
}: {
  readonly token: string | null;
  /** The address of the action. */
  readonly action: string;
  readonly label: string;
  readonly kind?: 'plain' | 'danger';
  readonly fields?: Readonly<Record<string, string>>;
}) {
  if (token === null) return null;
  return (
    <form method="post" action={action} class="action">
      <input type="hidden" name="token" value={token} />
      {Object.entries(fields).map(([name, value]) => (
        <input key={name} type="hidden" name={name} value={value} />
      ))}
      <button type="submit" class={`button button-${kind}`}>
        {label}
      </button>
    </form>
  );
}
