import type { WorkspaceUuid } from '../../shared/lib/ids.ts'
import { deviceFlow } from '../../shared/api/auth-internal.ts'
import { html, page, type Html } from './html.ts'
import { paths } from './paths.ts'

// The pages of signing in, as pure functions of what they show.

const csrfField = (csrf: string) => html`<input type="hidden" name="csrf" value="${csrf}" />`

export function signInPage(shown: { oidcHost: string | null }): string {
  const atIssuer =
    shown.oidcHost === null
      ? null
      : html`<p><a class="button main" href="${paths.oidc}">Sign in with ${shown.oidcHost}</a></p>`
  return page(
    'Sign in',
    html`${atIssuer}
      <p>
        ${shown.oidcHost === null ? 'Open' : 'Or open'} the sign-in link that your operator gives you. It is made on the
        server with
      </p>
      <p><code>svc-server login-link --email you@example.com</code></p>
      <p>and works once, for 15 minutes. Afterwards come back to the page you wanted.</p>`,
  )
}

/** Shown when a link is opened. `now`: somebody else who is signed in. */
export function linkPage(shown: { token: string; csrf: string; email: string; now: string | null }): string {
  const warning =
    shown.now === null ? null : html`<p class="warning">You are signed in as ${shown.now} now; that session ends.</p>`
  return page(
    'Sign in with this link?',
    html`<p>
        This link signs this browser in as <strong>${shown.email}</strong>. If you did not ask for it, close this page.
      </p>
      ${warning}
      <form method="post" action="${paths.link}">
        ${csrfField(shown.csrf)}<input type="hidden" name="token" value="${shown.token}" />
        <button class="main">Sign in as ${shown.email}</button>
      </form>`,
  )
}

export function codePage(shown: { csrf: string; email: string; code: string; problem: string | null }): string {
  return page(
    'Connect svc',
    html`<p>You are signed in as ${shown.email}. Enter the code that <code>svc login</code> shows.</p>
      ${shown.problem === null ? null : html`<p class="warning" role="alert">${shown.problem}</p>`}
      <form method="post" action="${deviceFlow.pagePath}">
        ${csrfField(shown.csrf)}
        <label for="code">Code</label>
        <input
          id="code"
          name="code"
          class="code"
          value="${shown.code}"
          maxlength="20"
          autocomplete="off"
          autocapitalize="characters"
          spellcheck="false"
          required
        />
        <button class="main">Continue</button>
      </form>`,
  )
}

export interface ConfirmShown {
  csrf: string
  grantId: string
  code: string
  email: string
  clientName: string
  address: string
  workspaces: readonly { id: WorkspaceUuid; name: string; role: string; isChosen: boolean }[]
}

export function confirmPage(shown: ConfirmShown): string {
  return page(
    'Sign svc in?',
    html`<p class="warning">
        Only go on if you typed <code>svc login</code> yourself just now and it shows this code. Whoever sent you here
        with a code of theirs would act as you.
      </p>
      <p class="code">${shown.code}</p>
      <dl>
        <dt>Asked by</dt>
        <dd>svc on ${shown.clientName}, from the address ${shown.address}</dd>
        <dt>Will act as</dt>
        <dd>${shown.email}, in the one workspace chosen here</dd>
      </dl>
      <form method="post" action="${paths.decision}">
        ${csrfField(shown.csrf)}<input type="hidden" name="grant" value="${shown.grantId}" />
        <label for="workspace">Workspace</label>
        <select id="workspace" name="workspace">
          ${shown.workspaces.map(optionOf)}
        </select>
        <button class="main" name="decision" value="approve">Sign svc in</button>
        <button name="decision" value="deny">Refuse</button>
      </form>`,
  )
}

function optionOf(workspace: ConfirmShown['workspaces'][number]): Html {
  const { id, name, role, isChosen } = workspace
  return isChosen
    ? html`<option value="${id}" selected>${name} (${role})</option>`
    : html`<option value="${id}">${name} (${role})</option>`
}

export function decidedPage(isApproved: boolean): string {
  return isApproved
    ? page('svc is signed in', html`<p>Go back to the terminal; you can close this page.</p>`)
    : page('Refused', html`<p>svc was not signed in. You can close this page.</p>`)
}

export interface AccountShown {
  csrf: string
  name: string
  email: string
  endsAt: string
  workspaces: readonly { name: string; role: string }[]
}

export function accountPage(shown: AccountShown): string {
  return page(
    'Signed in',
    html`<dl>
        <dt>You are</dt>
        <dd>${shown.name} (${shown.email})</dd>
        <dt>Workspaces</dt>
        ${shown.workspaces.map(({ name, role }) => html`<dd>${name} (${role})</dd>`)}
        <dt>This session ends</dt>
        <dd>${shown.endsAt}</dd>
      </dl>
      <p><a class="button" href="${deviceFlow.pagePath}">Enter a code of svc login</a></p>
      <form method="post" action="${paths.signOut}">
        ${csrfField(shown.csrf)}
        <button>Sign out</button>
      </form>`,
  )
}

export function signedOutPage(): string {
  return page('Signed out', html`<p>This browser is signed out. <a href="${paths.signIn}">Sign in again</a></p>`)
}

export function problemPage(shown: { title: string; message: string }): string {
  return page(
    shown.title,
    html`<p>${shown.message}</p>
      <p><a href="${paths.signIn}">To the sign-in page</a></p>`,
  )
}
