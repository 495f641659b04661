import sax from 'sax';
import { tooLarge, unreadable } from './diagnostics.ts';
import { MAX_CONTAINERS } from './unsafe-numbers.ts';

/** The most elements and attributes of one response together: twice as many as 64 MB of records have. */
const MAX_ELEMENTS = 3_000_000;

/** The most attributes of an element. */
const MAX_ATTRIBUTES = 1_000;

/** The text is parsed in pieces of this length; after each, the parser checks the length of comments and attributes. */
const PIECE = 64 * 1024;

/** Root elements that mean an error; other empty ones are lists without records. */
const ERROR_ROOT = /err|fault|exception|fail|denied|html/i;

/** The most nested elements: an envelope, a list, a record and its values are four. */
const MAX_DEPTH = 20;

/** The content of an element: text, null, or its children and attributes by name; several of one name are a list. */
export type XmlValue = string | null | { readonly [name: string]: XmlValue } | readonly XmlValue[];

interface OpenElement {
  readonly name: string;
  readonly isNil: boolean;
  hasChildren: boolean;
  members: Record<string, XmlValue> | null;
  text: string;
}

/** A name without its prefix: `d:Symbol` is Symbol. */
const localName = (name: string) => name.slice(name.indexOf(':') + 1);

/**
 * Reads XML into values. Attributes with a prefix (`xmlns:i`, `m:type`) are left out, except `nil` and `null`. Only
 * predefined entities and character references are expanded, and there may be no DTD.
 *
 * @returns the content of the root element.
 * @throws PipelineError `unreadable` for XML that is broken, cut off, or too deep; `too_large` for too many elements.
 */
export function readXml(text: string): XmlValue {
  const open: OpenElement[] = [];
  let elements = 0;
  let containers = 0;
  let root: XmlValue | undefined;
  const parser = sax.parser(true);
  const count = () => {
    elements += 1;
    if (elements > MAX_ELEMENTS) throw tooLarge(`more than ${MAX_ELEMENTS} elements`);
  };
  const fail = (error?: Error) => {
    if (error?.message.startsWith('Max buffer length'))
      throw tooLarge('a single comment or attribute of its XML');
    // The parser's message is left out, because it quotes the text around the error.
    throw unreadable(`broken XML, at line ${parser.line + 1}`, { cutShort: true });
  };
  parser.onerror = fail;
  parser.ondoctype = () => {
    throw unreadable('it is XML with a DTD, which is not read');
  };
  let attributesOfTag = 0;
  parser.onattribute = () => {
    count();
    if (++attributesOfTag > MAX_ATTRIBUTES)
      throw tooLarge(`an element of its XML has more than ${MAX_ATTRIBUTES} attributes`);
  };
  parser.onopentag = ({ name, attributes }) => {
    if (root !== undefined) fail();
    count();
    attributesOfTag = 0;
    if (open.length === MAX_DEPTH)
      throw unreadable(`it is XML of more than ${MAX_DEPTH} elements inside each other`);
    const element: OpenElement = {
      name: localName(name),
      isNil: isNil(attributes),
      hasChildren: false,
      members: null,
      text: '',
    };
    for (const [key, value] of Object.entries(attributes)) {
      if (key !== 'xmlns' && !key.includes(':')) add(element, key, String(value));
    }
    open.push(element);
  };
  const onText = (part: string) => {
    const element = open.at(-1);
    if (element !== undefined) element.text += part;
  };
  parser.ontext = onText;
  parser.oncdata = onText;
  parser.onclosetag = () => {
    const element = open.pop() ?? fail();
    const value = readContent(element);
    if (typeof value === 'object' && value !== null && ++containers > MAX_CONTAINERS) {
      throw tooLarge(`more than ${MAX_CONTAINERS} records`);
    }
    const parent = open.at(-1);
    if (parent === undefined) {
      if (value === '' && ERROR_ROOT.test(element.name))
        throw unreadable(`it is an empty element <${element.name}>`);
      root = value;
      return;
    }
    parent.hasChildren = true;
    add(parent, element.name, value);
  };
  for (let at = 0; at < text.length; at += PIECE) parser.write(text.slice(at, at + PIECE));
  parser.close();
  if (root === undefined) fail();
  return root as XmlValue;
}

function isNil(attributes: sax.Tag['attributes'] | sax.QualifiedTag['attributes']): boolean {
  return Object.entries(attributes).some(
    ([key, value]) => /:(?:nil|null)$/.test(key) && String(value).trim() === 'true',
  );
}

function add(element: OpenElement, name: string, value: XmlValue): void {
  // Without a prototype, so that no name collides with an inherited property.
  element.members ??= Object.create(null) as Record<string, XmlValue>;
  const { members } = element;
  const known = members[name];
  if (known === undefined) members[name] = value;
  else if (Array.isArray(known)) known.push(value);
  else members[name] = [known, value];
}

/** The content of an element. If it has text and no children, its attributes are left out. */
function readContent({ isNil, hasChildren, members, text }: OpenElement): XmlValue {
  if (isNil) return null;
  if (members === null) return text;
  if (text.trim() === '') return members;
  return hasChildren ? { ...members, '#text': text } : text;
}
