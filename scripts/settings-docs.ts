// Makes the tables of docs/configuration.md, .env.example and a JSON schema from the settings in src/core/settings.ts.
import { z } from 'zod';
import { loadConfig } from '../src/core/config.ts';
import { fileSettings } from '../src/core/environment.ts';
import { settingGroups, settings } from '../src/core/settings.ts';

type Name = keyof typeof settings;

const defaults = loadConfig({});

interface Described {
  readonly name: Name;
  /** In Markdown; says so if the setting is a secret. */
  readonly description: string;
  /** The default as it is written in an environment; empty if there is none. */
  readonly defaultText: string;
  /** The default, or an example if there is none. */
  readonly example: string;
  readonly isSecret: boolean;
}

function described(name: Name): Described {
  const { description = '', examples } = settings[name].meta() ?? {};
  const isSecret = name in fileSettings;
  const firstExample = Array.isArray(examples) ? String(examples[0]) : null;
  const value = defaults[name];
  const isEmpty = value === undefined || JSON.stringify(value) === '{}';
  // The example of a share is its default, because the default itself is a fraction here.
  const written = Array.isArray(value) ? value.join(',') : String(value);
  const defaultText = isEmpty ? '' : (firstExample ?? written);
  const example = firstExample ?? defaultText;
  if (description === '' || example === '') {
    throw new Error(`${name} needs a description, and an example if it has no default`);
  }
  const secret = isSecret && !description.includes('Secret:') ? ' Secret.' : '';
  return { name, description: `${description}${secret}`, defaultText, example, isSecret };
}

const groups = Object.entries(settingGroups).map(([title, group]) => ({
  title,
  settings: (Object.keys(group) as Name[]).map(described),
}));

/** The settings as Markdown, a list for each group: name, default, meaning. */
export function settingTables(): string {
  const row = ({ name, defaultText, description }: Described) =>
    `- \`${name}\`${defaultText === '' ? '' : ` (\`${defaultText}\`)`}: ${description}`;
  return groups
    .map(({ title, settings: ofGroup }) => [`## ${title}`, '', ...ofGroup.map(row)].join('\n'))
    .join('\n\n');
}

const WIDTH = 110;

/** Markdown as lines of a comment, of at most WIDTH characters; links become the names of their pages. */
function comment(markdown: string): string[] {
  const text = markdown.replace(/\[([^\]]+)\]\((\w[\w-]*\.md)\)/g, 'docs/$2');
  const lines = ['#'];
  for (const word of text.split(' ')) {
    const line = lines.at(-1) as string;
    if (`${line} ${word}`.length > WIDTH) lines.push(`# ${word}`);
    else lines[lines.length - 1] = `${line} ${word}`;
  }
  return lines;
}

const ENV_HEAD = `# Settings of eod-pipeline. Copy this file to \`.env\` ("eod init" does so) and uncomment what you want to change.
# Each line shows the default, or an example if there is none. Environment variables take precedence over the file.
# \`eod config\` prints all settings and their values, without secrets. A secret may be in a file: EOD_ACCESS_KEY_FILE.
# Written by \`npm run docs:generate\` from src/core/settings.ts.
`;

/** The file .env.example. */
export function envExample(): string {
  const parts = groups.map(({ title, settings: ofGroup }) => {
    const rule = `# --- ${title} `.padEnd(WIDTH - 10, '-');
    const each = ofGroup.map(({ name, description, example }) =>
      [...comment(description), `#${name}=${example}`].join('\n'),
    );
    return [rule, ...each].join('\n\n');
  });
  return `${[ENV_HEAD, ...parts].join('\n')}\n`.replace(/\n(# --- )/g, '\n\n$1').replace(/\n{3,}/g, '\n\n');
}

// Numbers as text; an empty text means that the setting is not set.
const WHOLE_NUMBER = '^\\s*\\d*\\s*$';
const ABOVE_ZERO = '^\\s*(0*[1-9]\\d*)?\\s*$';

/**
 * The settings as a JSON schema, for tools that write environments. Numbers and flags may be JSON numbers and booleans.
 * Further variables are allowed, except unknown ones that begin with EOD_.
 */
export function settingsSchema(): string {
  const names = [...Object.keys(settings), ...Object.values(fileSettings)];
  const { properties = {} } = z.toJSONSchema(z.object(settings), { io: 'input', unrepresentable: 'any' });
  const property = ({ name, description, defaultText, example, isSecret }: Described) => {
    const { type, minimum, maximum, pattern, enum: values } = properties[name] as Record<string, unknown>;
    const ofType =
      type === 'integer'
        ? {
            type: ['integer', 'string'],
            minimum,
            maximum,
            pattern: Number(minimum) > 0 ? ABOVE_ZERO : WHOLE_NUMBER,
          }
        : Array.isArray(values) && values.includes('true')
          ? { enum: ['true', 'false', '1', '0', '', true, false] }
          : {
              type: 'string',
              pattern: pattern === undefined ? undefined : `^$|${pattern}`,
              enum: Array.isArray(values) ? [...values, ''] : undefined,
            };
    return {
      description,
      ...ofType,
      ...(example.includes('://') ? { format: 'uri' } : {}),
      ...(isSecret ? { writeOnly: true } : {}),
      ...(defaultText === '' ? { examples: [example] } : { default: defaultText }),
    };
  };
  const all = groups.flatMap(({ settings: ofGroup }) => ofGroup);
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Settings of eod-pipeline',
    description:
      'Rules for each setting. The program checks more than a schema can: run "eod config" for a full check.',
    type: 'object',
    properties: Object.fromEntries([
      ...all.map((setting) => [setting.name, property(setting)]),
      ...Object.entries(fileSettings).map(([name, file]) => [
        file,
        { description: `Path of a file that holds ${name}.`, type: 'string' },
      ]),
    ]),
    propertyNames: { anyOf: [{ not: { pattern: '^EOD_' } }, { enum: names }] },
  };
  return `${JSON.stringify(schema, null, 2)}\n`;
}
