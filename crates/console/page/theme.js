// Before the first paint: the viewer's choice of light or dark.
{
  const theme = localStorage.getItem("forebay-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
}
