import { isSourcePath } from '../../shared/lib/source-path.ts'

/** Where files are fetched from: the address of a git repository, what of it, and the folder in it. Pure. */
export interface RepoSource {
  url: URL
  /** A branch, a tag or a whole commit id; null: the default branch. */
  ref: string | null
  /** Without a slash at its ends; null: the root. */
  subdir: string | null
}

export type ReadSource = { source: RepoSource; flaw: null } | { source: null; flaw: { param: string; message: string } }

const flawed = (param: string, message: string): ReadSource => ({ source: null, flaw: { param, message } })

const shorthand = /^[A-Za-z0-9][\w-]{0,99}\/[\w.-]{1,100}$/

/**
 * Reads the address as people write it: `https://HOST/PATH`, or `OWNER/REPO` at GitHub. http is left to `SVC_ALLOW_HOSTS`. All other
 * transports of git start programs or read files.
 */
export function readSource(given: { url: string; ref?: string | undefined; subdir?: string | undefined }): ReadSource {
  // URL passes over blanks and line ends within a text.
  if (/[\s\p{Cc}\\]/u.test(given.url)) return flawed('url', 'An address has no blanks, line ends or backslashes.')
  const url = URL.parse(shorthand.test(given.url) ? `https://github.com/${given.url}` : given.url)
  if (url === null || !['https:', 'http:'].includes(url.protocol) || !/^https?:\/\//i.test(url.href))
    return flawed('url', 'Give the https address of a git repository, or owner/repo at GitHub.')
  if (url.username !== '' || url.password !== '')
    return flawed('url', 'Give the address without name and password: only public repositories are read.')
  if (url.search !== '' || url.hash !== '') return flawed('url', 'Give the address without anything behind ? or #.')
  if (url.pathname === '/') return flawed('url', 'The address names no repository.')
  const ref = given.ref ?? null
  if (ref !== null && !isRef(ref)) return flawed('ref', 'This is no name of a branch or tag, and no id of a commit.')
  const subdir = given.subdir?.replace(/^(?:\.\/)+|\/+$/g, '') ?? ''
  if (subdir !== '' && subdir !== '.' && !isSourcePath(subdir))
    return flawed('subdir', 'Give the folder as a path below the root of the repository.')
  return { source: { url, ref, subdir: subdir === '' || subdir === '.' ? null : subdir }, flaw: null }
}

/** What `git check-ref-format` takes, and nothing that an option or a refspec could begin or contain. */
function isRef(ref: string): boolean {
  if (ref.length > 200 || !/^[\p{L}\p{N}_][^\s\p{Cc}~^:?*[\\]*$/u.test(ref)) return false
  if (/\.\.|@\{|\/\/|[./]$|\.lock(?:\/|$)|\/[.-]/.test(ref) || ref === '@') return false
  return ref.isWellFormed()
}

/** The one spelling of a repository: with it, skills of the same one are known again. */
export function repoKey({ host, hostname, pathname, protocol }: URL): string {
  const path = pathname.replace(/\/+$/, '').replace(/\.git$/i, '')
  // GitHub does not tell capitals from small letters.
  return `${protocol}//${host}${hostname === 'github.com' ? path.toLowerCase() : path}`
}

/** What the root of a source is called: the last part of its folder or address. */
export const rootName = ({ url, subdir }: RepoSource): string => (subdir ?? repoKey(url)).split('/').at(-1) ?? ''
