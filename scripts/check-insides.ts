/**
 * Insides of libraries, which an upgrade may change without a word, and the only files that touch them. A test beside each, or in
 * `test/store/insides.test.ts` and `test/process/run-host/pty.test.ts`, says in a sentence what an upgrade has changed.
 */
const homes: Readonly<Record<string, RegExp>> = {
  knex: /^control-plane\/db\/(?:postgres-client|sqlite-client|knex-client\.d)\.ts$/,
  zod: /^control-plane\/db\/columns\.ts$/,
  'node-pty': /^device-manager\/run-host\/launch\/pty\.ts$/,
}
/** Has `client` of handles, which knex's types leave open. */
const database = /^control-plane\/db\//
/** Modules whose documentation says that they are imported so. */
const documented = new Set(['ajv/dist/2020.js'])

/** The names that a line may not have elsewhere: a file within a package, or a name with the underscore of what is private. */
const deepImport = /\b(?:from|import)\s*\(?\s*'((?:@[\w.-]+\/)?[\w-][\w.-]*\/(?:lib|dist|src|build)\/[^']+)'/
const privateNames = [
  /[\w)\]?!]\.(_[a-z]\w*)/i,
  /\[['"](_[a-z]\w*)['"]\]/i,
  /\{\s*(_[a-z]\w*)\s*[,}]/i,
  /\b(__knex\w*)/,
]
/** Texts, but those that name a property. */
const texts = /(?<!\[)'[^']*'/g
const client = /\b(?:db|tx|root|Knex\))\.client\b/

/** Places where a file reaches for the inside of a library that another file is the home of, or none. */
export function insideProblems(file: string, text: string): string[] {
  if (file.endsWith('.test.ts') || Object.values(homes).some((home) => home.test(file))) return []
  const complain = (name: string) =>
    `${file}: \`${name}\` is the inside of a library; give it one file with a test and list both in scripts/check-insides.ts`
  return text.split('\n').flatMap((line) => {
    if (/^\s*(?:\*|\/\/|\/\*)/.test(line)) return []
    const path = deepImport.exec(line)?.[1]
    const found = [
      path === undefined || documented.has(path) ? undefined : path,
      ...privateNames.map((name) => name.exec(line.replaceAll(texts, "''"))?.[1]),
      database.test(file) ? undefined : client.exec(line)?.[0],
    ]
    return [...new Set(found)].flatMap((name) => (name === undefined ? [] : [complain(name)]))
  })
}
