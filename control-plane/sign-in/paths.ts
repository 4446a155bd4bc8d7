import { connectionCallbackPath, connectionClientPath } from '../../shared/api/connection-fields.ts'

export const paths = {
  signIn: '/sign-in',
  link: '/sign-in/link',
  oidc: '/sign-in/oidc',
  oidcCallback: '/sign-in/oidc/callback',
  decision: '/device/decision',
  account: '/account',
  signOut: '/sign-out',
  connectionCallback: connectionCallbackPath,
  connectionClient: connectionClientPath,
} as const

/**
 * Returns a path of this server to go to, or null when the text would lead elsewhere. Browsers read `//host` and
 * `/\host` as another host, and drop tabs and line breaks while reading.
 */
export function ownPath(text: string): string | null {
  if (text.length > 3000 || !/^\/(?![/\\])[!-~]*$/.test(text)) return null
  const nowhere = 'http://nowhere.invalid'
  const url = URL.canParse(text, nowhere) ? new URL(text, nowhere) : null
  if (url === null || url.origin !== nowhere || url.pathname.startsWith('//')) return null
  return url.pathname + url.search
}
