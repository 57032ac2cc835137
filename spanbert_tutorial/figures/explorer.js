
document.querySelectorAll('[data-explorer]:not([data-ready])').forEach(function (root) {
  root.setAttribute('data-ready', '');
  var panels = JSON.parse(root.querySelector('script[type="application/json"]').textContent);
  var selects = root.querySelectorAll('select'), view = root.querySelector('[data-view]');
  function show() {
    var index = 0;
    selects.forEach(function (select) { index = index * select.options.length + select.selectedIndex; });
    view.innerHTML = panels[index];
  }
  selects.forEach(function (select) { select.addEventListener('change', show); });
  root.querySelector('[data-controls]').hidden = false;
  show();
});
