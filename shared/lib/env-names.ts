// Names of environment variables that steer programs. Whoever sets one of them decides what else a harness, its shell
// or git loads and runs, or where their traffic goes.

const words = (text: string): string[] => text.split(/\s+/)

/** Variables that shells, loaders, interpreters and tools read when they start. */
const exact = new Set(
  words(`PATH HOME USER LOGNAME SHELL PWD OLDPWD TERM TERMINFO TERMINFO_DIRS LANG LANGUAGE TMPDIR TMP TEMP IFS ENV BASH_ENV BASHOPTS
    SHELLOPTS PS4 PROMPT_COMMAND CDPATH FPATH ZDOTDIR EDITOR VISUAL PAGER MANPAGER LESSOPEN LESSCLOSE LESS BROWSER SUDO_ASKPASS
    SSH_ASKPASS SSH_AUTH_SOCK GPG_TTY HISTFILE INPUTRC HOSTALIASES LOCALDOMAIN NIX_PATH EMACSLOADPATH VIMINIT EXINIT MYVIMRC
    CLASSPATH JDK_JAVA_OPTIONS _JAVA_OPTIONS JAVA_TOOL_OPTIONS JAVA_HOME MAVEN_OPTS MAVEN_ARGS GRADLE_OPTS GRADLE_USER_HOME
    R_PROFILE R_PROFILE_USER R_ENVIRON R_ENVIRON_USER JULIA_LOAD_PATH JULIA_DEPOT_PATH PHPRC PHP_INI_SCAN_DIR LUA_INIT TCLLIBPATH RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER RUSTFLAGS GOFLAGS GOPROXY GONOSUMDB GOTOOLCHAIN
    MAKEFLAGS GNUMAKEFLAGS CC CXX LDFLAGS CFLAGS CPPFLAGS CURL_HOME WGETRC NETRC OPENSSL_CONF OPENSSL_MODULES OPENSSL_ENGINES
    SSL_CERT_FILE SSL_CERT_DIR CURL_CA_BUNDLE REQUESTS_CA_BUNDLE SSLKEYLOGFILE DOCKER_HOST KUBECONFIG AWS_CONFIG_FILE
    AWS_SHARED_CREDENTIALS_FILE AWS_PAGER GH_PAGER GH_EDITOR GH_BROWSER KUBE_EDITOR BUN_OPTIONS DENO_DIR ELECTRON_RUN_AS_NODE
    PYTEST_ADDOPTS PYTEST_PLUGINS TOX_CONFIG_FILE TAR_OPTIONS RIPGREP_CONFIG_PATH BAT_PAGER BAT_CONFIG_PATH FZF_DEFAULT_COMMAND FZF_DEFAULT_OPTS
    DOTNET_STARTUP_HOOKS MAKEFILES MAKE GCC_EXEC_PREFIX COMPILER_PATH LIBRARY_PATH CPATH CMAKE_TOOLCHAIN_FILE RSYNC_RSH
    CVS_RSH RUSTC RUSTDOC GOENV GOROOT GOPATH GOTMPDIR ANSIBLE_CONFIG TF_CLI_CONFIG_FILE TF_CLI_ARGS DOCKER_CONFIG PSQLRC
    PGSERVICEFILE MYSQL_HOME SQLITE_HISTORY HGRCPATH HGEDITOR SVN_EDITOR SVN_SSH SCREENRC TMUX WATCH COMSPEC`),
)

/** Beginnings of names of whole families. */
const families =
  /^(?:SVC|LD|DYLD|LC|NODE|PYTHON|PERL|PERL5|RUBY|BASH|ZSH|XDG|NPM_CONFIG|YARN|PNPM|PIP|UV|CARGO|BUNDLE|GEM|JAVA_TOOL|ANT|GCONV|MALLOC|GLIBC|CLAUDE|CODEX|OPENCODE|CURSOR|DISABLE|CORECLR|COR|DOTNET|MSBUILD|ERL|ELIXIR|MIX|TF_CLI_ARGS|ANSIBLE)_|^(?:BASH_FUNC|PERL5|RUBY(?:OPT|LIB)|PYTHON|LUA_)|^GIT_/

/** Names that look like one of a family but are only read by scripts and for credentials. */
const harmless = new Set([
  'GIT_TOKEN',
  'GIT_USERNAME',
  'GIT_PASSWORD',
  'NODE_AUTH_TOKEN',
  'NPM_TOKEN',
  'CURSOR_API_KEY',
])
const isToken = /(?:^|_)(?:TOKEN|KEY|SECRET|PASSWORD)$/

/** Tells whether the variable steers programs, so that no secret may have its name. */
export function steersPrograms(name: string): boolean {
  const upper = name.toUpperCase()
  if (exact.has(upper)) return true
  if (harmless.has(upper)) return false
  if (!families.test(upper)) return false
  // Tokens of tools are what secrets are for; they load nothing.
  return !(isToken.test(upper) && !/^(?:SVC|LD|DYLD|GIT)_/.test(upper))
}

/**
 * Tells whether the name says that the variable is a credential and nothing else. Any colleague may give such a variable to an agent that
 * asks.
 */
export const namesCredential = (name: string): boolean => isToken.test(name.toUpperCase()) && !steersPrograms(name)

const detours =
  /(?:^|_)(?:HTTPS?|ALL|NO|FTP|SOCKS5?)_PROXY$|_(?:BASE_URL|API_BASE|API_URL|ENDPOINT(?:_URL)?|API_HOST)$|^AWS_ENDPOINT_URL|^OLLAMA_HOST$/

/** Tells whether the variable decides where the traffic of a program goes, which only a workspace admin may set. */
export const redirectsTraffic = (name: string): boolean => detours.test(name.toUpperCase())
