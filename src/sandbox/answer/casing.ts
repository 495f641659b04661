/** How keys are cased: as live answers do, as declared, or oddly. */
export const CASINGS = ['pascal', 'camel', 'upper', 'lower', 'mixed'] as const;
export type Casing = (typeof CASINGS)[number];

/** Live answers write these all upper case (field notes). */
const ACRONYMS = /^(isin|eps|ebit|eod|oi|ttq)(?=[A-Z]|$)/;

/** A specification name in the casing asked for: `isin` → `ISIN`, `scripCode` → `ScripCode`. */
export function cased(name: string, casing: Casing): string {
  switch (casing) {
    case 'pascal': {
      const acronym = ACRONYMS.exec(name)?.[0];
      if (acronym !== undefined) return acronym.toUpperCase() + name.slice(acronym.length);
      return name.charAt(0).toUpperCase() + name.slice(1);
    }
    case 'camel':
      return name.charAt(0).toLowerCase() + name.slice(1);
    case 'upper':
      return name.toUpperCase();
    case 'lower':
      return name.toLowerCase();
    case 'mixed':
      return [...name].map((sign, at) => (at % 2 === 0 ? sign.toLowerCase() : sign.toUpperCase())).join('');
  }
}
