import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Finds mentions of files, and of `file.ts:name`, in a page of documentation that do not exist (any more). */
export function staleMentions(page: string, read: (file: string) => string | null): string[] {
  const mentions = page.matchAll(
    /`((?:shared|control-plane|device-manager|cli|scripts|test)\/[\w./-]+\.ts)(?::(\w+))?`/g,
  )
  return [...mentions].flatMap(([, file = '', name]) => {
    const text = read(file)
    if (text === null) return [`${file} is not there`]
    return name === undefined || new RegExp(`\\b${name}\\b`).test(text) ? [] : [`${file} has no ${name}`]
  })
}

/** Reads files of the checkout at `root`. */
export const filesOf =
  (root: string) =>
  (file: string): string | null => {
    const path = join(root, file)
    return existsSync(path) ? readFileSync(path, 'utf8') : null
  }
