import table from './command-forms.json' with { type: 'json' }

const forms = table as unknown as Readonly<Record<string, Readonly<Record<string, string>>>>

/** What the flags and positionals of a command take, in words that follow `It takes`, by their spelling. Loaded for a refusal alone. */
export const acceptedForms = (command: string): Readonly<Record<string, string>> =>
  Object.hasOwn(forms, command) ? forms[command]! : {}
