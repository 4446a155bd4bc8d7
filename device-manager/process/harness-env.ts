/**
 * Chooses the variables of a person's shell that a harness gets, by an allow-list: what the daemon or a service manager was started
 * with stays out, and so does whatever secret happens to be exported. Listed are those that tools are found and set up by,
 * and those that the harnesses themselves read.
 */
const names: ReadonlySet<string> = new Set(
  `PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TMPDIR EDITOR VISUAL PAGER COLORTERM DISPLAY WAYLAND_DISPLAY
  SSH_AUTH_SOCK SSH_AGENT_PID GPG_AGENT_INFO DBUS_SESSION_BUS_ADDRESS
  HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy
  NODE_USE_ENV_PROXY SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS CURL_CA_BUNDLE REQUESTS_CA_BUNDLE GIT_SSL_CAINFO NIX_SSL_CERT_FILE
  GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL GIT_SSH GIT_SSH_COMMAND GIT_CONFIG_GLOBAL
  VOLTA_HOME BUN_INSTALL DENO_DIR DENO_INSTALL COREPACK_HOME NODE_PATH
  GOPATH GOROOT GOBIN GOPROXY GOPRIVATE GOFLAGS CARGO_HOME RUSTUP_HOME RUSTUP_TOOLCHAIN RUSTFLAGS
  JAVA_HOME MAVEN_HOME M2_HOME GRADLE_HOME GRADLE_USER_HOME ANDROID_HOME ANDROID_SDK_ROOT KOTLIN_HOME
  GEM_HOME GEM_PATH BUNDLE_PATH VIRTUAL_ENV PYTHONPATH PIPX_HOME POETRY_HOME UV_CACHE_DIR
  DOTNET_ROOT FLUTTER_ROOT PUB_CACHE LD_LIBRARY_PATH LIBRARY_PATH CPATH PKG_CONFIG_PATH MANPATH INFOPATH
  DOCKER_HOST DOCKER_CONTEXT DOCKER_CONFIG KUBECONFIG NIX_PATH NIX_PROFILES IN_NIX_SHELL IS_SANDBOX
  GH_HOST GH_CONFIG_DIR DISABLE_AUTOUPDATER CLOUD_ML_REGION
  GOOGLE_APPLICATION_CREDENTIALS GOOGLE_CLOUD_PROJECT GOOGLE_CLOUD_LOCATION GEMINI_API_KEY GOOGLE_API_KEY
  OPENROUTER_API_KEY XAI_API_KEY GROQ_API_KEY MISTRAL_API_KEY DEEPSEEK_API_KEY`.split(/\s+/),
)

const prefixes =
  `LC_ XDG_ HOMEBREW_ NVM_ FNM_ NODENV_ PNPM_ ASDF_ MISE_ RTX_ SDKMAN_ PYENV_ RBENV_ RVM_ CONDA_ JENV_ TFENV_ GOENV_
  ANTHROPIC_ CLAUDE_ CODEX_ OPENAI_ AZURE_OPENAI_ OPENCODE_ CURSOR_ AWS_ VERTEX_REGION_`.split(/\s+/)

/** Variables that one Claude Code leaves for the programs it starts; a second one would take itself for a part of the first. */
const ofOuterHarness =
  /^(CLAUDECODE.*|CLAUDE_CODE_(ENTRYPOINT|EXECPATH|SESSION_ID|SSE_PORT)|CODEX_SANDBOX.*|CURSOR_AGENT|OPENCODE(_PID)?)$/

/** Session of the service manager or login, not of the person: a harness has its own. */
const ofSession = /^XDG_(SESSION_ID|VTNR|SEAT|SEAT_PATH|SESSION_PATH)$/

export function mayPass(name: string): boolean {
  if (name.startsWith('SVC_') || ofOuterHarness.test(name) || ofSession.test(name)) return false
  return names.has(name) || prefixes.some((prefix) => name.startsWith(prefix))
}

export function passableEnv(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const kept: Record<string, string> = {}
  for (const [name, value] of Object.entries(env)) if (value !== undefined && mayPass(name)) kept[name] = value
  return kept
}
